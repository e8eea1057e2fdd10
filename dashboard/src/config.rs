//! The stored configuration: settings, recent files, layouts, notes. It is one JSON file, which is replaced as a whole.
//! Missing or invalid values take their defaults.

pub use crate::notes::{Note, Notes, Pins};

use crate::{
    lenient::{each_value, or_default, valid_elements},
    shell::Layout,
};
use serde::{Deserialize, Deserializer, Serialize};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};
use ui::{
    format::TimeUnit,
    theme::{ColorScheme, Density, Theme, metrics},
    widgets::SideSizes,
};

/// Recent paths that are stored, at most.
const MAX_RECENT: usize = 20;

/// Settings of the window.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Settings {
    /// Colours of background and text.
    #[serde(deserialize_with = "or_default")]
    pub theme: Theme,
    /// Colours of runs and categories.
    #[serde(rename = "colours", deserialize_with = "or_default")]
    pub colors: ColorScheme,
    /// Spacing of controls and height of tracks.
    #[serde(deserialize_with = "or_default")]
    pub density: Density,
    /// Unit of durations.
    #[serde(deserialize_with = "or_default")]
    pub time_unit: TimeUnit,
    /// Size of everything; 1 is the desktop's size.
    #[serde(deserialize_with = "scale")]
    pub scale: f32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            theme: Theme::default(),
            colors: ColorScheme::default(),
            density: Density::default(),
            time_unit: TimeUnit::default(),
            scale: 1.0,
        }
    }
}

/// A path that was opened before.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Recent {
    /// The absolute path.
    pub path: PathBuf,
    /// The kind it was opened as: `trace`.
    #[serde(default, deserialize_with = "or_default")]
    pub kind: String,
}

/// The contents of the configuration file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Config {
    /// The settings of the window.
    #[serde(flatten)]
    pub settings: Settings,
    /// Recent paths, the newest first.
    #[serde(deserialize_with = "valid_elements")]
    pub recent: Vec<Recent>,
    /// Arrangement of the panels by the kind of data: `trace`, `logdir`, `graph`, `run`.
    #[serde(deserialize_with = "each_value")]
    pub layouts: BTreeMap<String, Layout>,
    /// Bookmarks of traces, by path.
    pub notes: Notes,
    /// Pinned tags, by logdir.
    pub pins: Pins,
    /// Sizes that the user gave the side panels.
    #[serde(deserialize_with = "sides", serialize_with = "shared")]
    pub sides: SideSizes,
}

fn scale<'de, D: Deserializer<'de>>(from: D) -> Result<f32, D::Error> {
    let scale: Option<f32> = or_default(from)?;
    Ok(scale.unwrap_or(1.0).clamp(metrics::SCALE[0], metrics::SCALE[1]))
}

fn sides<'de, D: Deserializer<'de>>(from: D) -> Result<SideSizes, D::Error> {
    each_value(from).map(Arc::new)
}

fn shared<S: serde::Serializer>(sides: &SideSizes, to: S) -> Result<S::Ok, S::Error> {
    (**sides).serialize(to)
}

/// The path of the file: `stepscope/window.json` in the desktop's folder for configurations. `None` without a home
/// folder.
pub fn default_path() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| std::env::home_dir().map(|home| home.join(".config")))?;
    Some(folder.join("stepscope").join("window.json"))
}

impl Config {
    /// Reads the file. A missing file is the default configuration.
    ///
    /// # Errors
    /// When the file cannot be read or is no JSON object. Such a file must not be replaced.
    pub fn load(path: &Path) -> io::Result<Self> {
        match std::fs::read(path) {
            Ok(bytes) => {
                let mut config: Self = serde_json::from_slice(&bytes).map_err(io::Error::other)?;
                config.recent.truncate(MAX_RECENT);
                config.notes.truncate();
                config.pins.truncate();
                Ok(config)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// Replaces the file at once, so that a reader sees either the old or the new contents.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn save(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let fresh = path.with_extension(format!("{}.new", std::process::id()));
        std::fs::write(&fresh, serde_json::to_vec_pretty(self)?)?;
        std::fs::rename(&fresh, path)
    }

    /// Puts a path at the top of the recent paths.
    pub fn add_recent(&mut self, path: &Path, kind: &str) {
        self.recent.retain(|r| r.path != path);
        self.recent.insert(0, Recent { path: path.to_owned(), kind: kind.to_owned() });
        self.recent.truncate(MAX_RECENT);
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
            colors: ColorScheme::Tol,
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
        let earlier = r#"{"density":"Roomy","colours":"Tol","time_unit":"\u00b5s",
            "notes":[{"trace":"/a","notes":[{"time":5,"text":"x"},{"time":"?"}]}],"pins":[{"logdir":"/b","tags":["loss",1]}]}"#;
        std::fs::write(&path, earlier).unwrap();
        let read = Config::load(&path).unwrap();
        let settings = Settings { density: Density::Comfortable, colors: ColorScheme::Tol, ..Settings::default() };
        assert_eq!(
            read.settings,
            Settings { time_unit: TimeUnit::Us, ..settings },
            "renamed values keep their meaning"
        );
        assert_eq!(read.notes.get(Path::new("/a")), [Note { time: 5, text: "x".into() }]);
        assert_eq!(read.pins.get(Path::new("/b")), ["loss"]);
        std::fs::write(&path, "{").unwrap();
        assert!(Config::load(&path).is_err(), "what is no JSON stays as it is");
    }
}
