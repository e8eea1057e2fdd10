//! What the window remembers between runs: settings, recent files, layouts, notes. One JSON file, replaced as a whole; what
//! is missing or makes no sense in it takes its default.

pub use crate::notes::{Note, Notes, Pins};

use crate::{notes::MAX_NOTED, shell::Layout};
use serde_json::{Map, Value, json};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};
use ui::{
    format::TimeUnit,
    theme::{Colours, Density, Theme, metrics},
    widgets::SideSizes,
};

/// Recent paths that are kept, at most.
const MAX_RECENT: usize = 20;
/// Parts beside panels whose sizes are read, at most: there are fewer.
const MAX_SIDES: usize = 64;

/// Settings of the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Colours.
    pub theme: Theme,
    /// Colours of runs and categories.
    pub colours: Colours,
    /// Room between and in controls and tracks.
    pub density: Density,
    /// Unit of durations.
    pub time_unit: TimeUnit,
    /// Size of everything, 1 for what the desktop asks for.
    pub scale: f32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            theme: Theme::System,
            colours: Colours::OkabeIto,
            density: Density::Normal,
            time_unit: TimeUnit::Auto,
            scale: 1.0,
        }
    }
}

/// A path that was opened before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recent {
    /// Absolute.
    pub path: PathBuf,
    /// What it was read as: `trace`.
    pub kind: String,
}

/// Everything that is remembered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Settings.
    pub settings: Settings,
    /// The newest first.
    pub recent: Vec<Recent>,
    /// Arrangement of the panels by what is open: `trace`, `logdir`, `graph`, `run`.
    pub layouts: BTreeMap<String, Layout>,
    /// Notes on traces, by path.
    pub notes: Notes,
    /// Pinned tags, by logdir.
    pub pins: Pins,
    /// What the user gave the parts beside panels.
    pub sides: SideSizes,
}

/// Where the file lies: `stepscope/window.json` in the desktop's folder for configurations. `None` without a home.
pub fn default_path() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| std::env::home_dir().map(|home| home.join(".config")))?;
    Some(folder.join("stepscope").join("window.json"))
}

impl Config {
    /// Reads the file. A missing one is the default.
    ///
    /// # Errors
    /// When there is a file that cannot be read or is no JSON: it is not to be replaced.
    pub fn load(path: &Path) -> io::Result<Self> {
        match std::fs::read(path) {
            Ok(bytes) => {
                let value: Value = serde_json::from_slice(&bytes).map_err(io::Error::other)?;
                Ok(Self::from_json(&value))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// Replaces the file; a reader sees the old or the new one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let fresh = path.with_extension(format!("{}.new", std::process::id()));
        std::fs::write(&fresh, serde_json::to_vec_pretty(&self.to_json())?)?;
        std::fs::rename(&fresh, path)
    }

    /// Puts a path at the top of the recent ones.
    pub fn add_recent(&mut self, path: &Path, kind: &str) {
        self.recent.retain(|r| r.path != path);
        self.recent.insert(0, Recent { path: path.to_owned(), kind: kind.to_owned() });
        self.recent.truncate(MAX_RECENT);
    }

    fn to_json(&self) -> Value {
        let Settings { theme, colours, density, time_unit, scale } = self.settings;
        let recent: Vec<Value> = self.recent.iter().map(|r| json!({ "path": r.path, "kind": r.kind })).collect();
        let layouts: Map<String, Value> = self.layouts.iter().map(|(k, v)| (k.clone(), v.to_json())).collect();
        let note = |n: &Note| json!({ "time": n.time, "text": n.text });
        let notes = self
            .notes
            .0
            .iter()
            .map(|(path, notes)| json!({ "trace": path, "notes": notes.iter().map(note).collect::<Vec<_>>() }));
        let pins = self.pins.0.iter().map(|(path, tags)| json!({ "logdir": path, "tags": tags }));
        json!({
            "theme": theme.name(),
            "colours": colours.name(),
            "density": density.name(),
            "time_unit": time_unit.name(),
            "scale": scale,
            "recent": recent,
            "layouts": layouts,
            "notes": notes.collect::<Vec<_>>(),
            "pins": pins.collect::<Vec<_>>(),
            "sides": *self.sides,
        })
    }

    fn from_json(value: &Value) -> Self {
        let word = |name: &str| value[name].as_str().unwrap_or_default();
        let scale = value["scale"].as_f64().map_or(1.0, |s| s as f32);
        let settings = Settings {
            theme: Theme::ALL.into_iter().find(|t| t.name() == word("theme")).unwrap_or_default(),
            colours: Colours::ALL.into_iter().find(|c| c.name() == word("colours")).unwrap_or_default(),
            density: Density::ALL.into_iter().find(|d| d.name() == word("density")).unwrap_or_default(),
            time_unit: TimeUnit::ALL.into_iter().find(|u| u.name() == word("time_unit")).unwrap_or_default(),
            scale: scale.clamp(metrics::SCALE[0], metrics::SCALE[1]),
        };
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let recent = list(&value["recent"]).into_iter().filter_map(|r| {
            let kind = r["kind"].as_str().unwrap_or_default().to_owned();
            Some(Recent { path: r["path"].as_str()?.into(), kind })
        });
        let layouts = value["layouts"].as_object().into_iter().flatten();
        let note = |n: &Value| {
            Some(Note { time: n["time"].as_i64()?, text: n["text"].as_str().unwrap_or_default().to_owned() })
        };
        let notes = list(&value["notes"]).into_iter().filter_map(|of| {
            Some((of["trace"].as_str()?.into(), list(&of["notes"]).iter().filter_map(note).collect()))
        });
        let text = |v: &Value| v.as_str().map(str::to_owned);
        let pins = list(&value["pins"]).into_iter().filter_map(|of| {
            Some((of["logdir"].as_str()?.into(), list(&of["tags"]).iter().filter_map(text).collect()))
        });
        let sides = value["sides"].as_object().into_iter().flatten().take(MAX_SIDES);
        let sides = sides.filter_map(|(id, size)| Some((id.clone(), size.as_f64()? as f32)));
        Self {
            settings,
            recent: recent.take(MAX_RECENT).collect(),
            layouts: layouts.filter_map(|(k, v)| Some((k.clone(), Layout::from_json(v)?))).collect(),
            notes: Notes(notes.take(MAX_NOTED).collect()),
            pins: Pins(pins.take(MAX_NOTED).collect()),
            sides: SideSizes::new(sides.filter(|(_, size)| size.is_finite()).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survives_the_file_and_forgives_nonsense() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stepscope/window.json");
        assert_eq!(Config::load(&path).unwrap(), Config::default());
        let settings = Settings {
            theme: Theme::Light,
            colours: Colours::Tol,
            density: Density::Compact,
            time_unit: TimeUnit::Us,
            scale: 1.5,
        };
        let mut config = Config { settings, ..Config::default() };
        config.add_recent(Path::new("/a"), "trace");
        config.add_recent(Path::new("/b"), "logdir");
        config.add_recent(Path::new("/a"), "trace");
        config.layouts.insert("trace".into(), Layout::tabs(crate::ViewKind::ALL));
        config.notes.set(Path::new("/a"), vec![Note { time: -5, text: "here \"it\" stalls".into() }]);
        config.pins.set(Path::new("/logs"), vec!["loss".into(), "a/b".into()]);
        config.sides = SideSizes::new([("timeline details".to_owned(), 240.0)].into());
        config.save(&path).unwrap();
        assert_eq!(Config::load(&path).unwrap(), config);
        assert_eq!(config.recent.iter().map(|r| r.path.to_str().unwrap()).collect::<Vec<_>>(), ["/a", "/b"]);

        std::fs::write(
            &path,
            r#"{"theme":7,"scale":1e9,"recent":[3,{"path":"/x"}],"layouts":{"trace":"?"},"notes":{},"sides":{"a":"b","c":[]}}"#,
        )
        .unwrap();
        let read = Config::load(&path).unwrap();
        assert_eq!(read.settings, Settings { scale: metrics::SCALE[1], ..Settings::default() });
        assert_eq!((read.recent.len(), read.layouts.len(), read.sides.len()), (1, 0, 0));
        std::fs::write(&path, "{").unwrap();
        assert!(Config::load(&path).is_err(), "what is no JSON stays as it is");
    }
}
