//! The images that MLflow's `log_image` writes: `artifacts/images/KEY%step%N%timestamp%MS%ID.png`, with `#` for each `/`
//! of the key (mlflow's tracking/client.py).

use std::{collections::BTreeSet, fs, path::Path};

use crate::{
    entry::{Entry, Value},
    file, image,
    reader::{Batch, Problem},
};

/// The largest image that is read.
const MAX_BYTES: u64 = 64 << 20;

/// The images of a run that were handed out, by their names.
#[derive(Debug, Default)]
pub(super) struct Images {
    done: BTreeSet<String>,
}

impl Images {
    /// Adds the new images of a run's folder, by steps, until `allowance` bytes are read.
    pub fn read(&mut self, run: &Path, allowance: u64, batch: &mut Batch) {
        let folder = run.join("artifacts/images");
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut new: Vec<(ImageName, String)> =
            names.filter(|name| !self.done.contains(name)).filter_map(|name| Some((parse(&name)?, name))).collect();
        new.sort_unstable_by(|a, b| (a.0.step, &a.1).cmp(&(b.0.step, &b.1)));
        for (facts, name) in new {
            if batch.n_bytes >= allowance {
                batch.has_more = true;
                return;
            }
            let path = folder.join(&name);
            let is_settled = || fs::metadata(&path).is_ok_and(|metadata| file::is_settled(&metadata));
            match file::read(&path, MAX_BYTES) {
                Ok(bytes) if image::is_complete(&bytes) => {
                    batch.n_bytes += bytes.len() as u64;
                    let value = Value::Image { size: image::size(&bytes), file: bytes };
                    batch.entries.push(Entry { tag: facts.key, step: facts.step, wall: facts.wall, value });
                }
                // It is still being copied.
                Ok(_) if !is_settled() => continue,
                Ok(_) => batch.problems.push(Problem { what: "an image without its end", bytes: 0..0 }),
                Err(_) => {
                    let what = "an image that cannot be read, or of more than 64 MiB";
                    batch.problems.push(Problem { what, bytes: 0..0 });
                }
            }
            self.done.insert(name);
        }
    }
}

/// What the name of an image says.
#[derive(Debug, PartialEq)]
struct ImageName {
    key: String,
    step: i64,
    /// Unix seconds.
    wall: f64,
}

fn parse(name: &str) -> Option<ImageName> {
    let stem = [".png", ".jpg", ".jpeg"].iter().find_map(|ending| name.strip_suffix(ending))?;
    // `+` in versions in between.
    let separator = if stem.contains("%step%") { '%' } else { '+' };
    // The key may have the separator, too.
    let mut parts = stem.rsplitn(6, separator);
    let _id = parts.next()?;
    let wall = parts.next()?.parse::<i64>().ok()? as f64 / 1e3;
    (parts.next()? == "timestamp").then_some(())?;
    let step = parts.next()?.parse().ok()?;
    (parts.next()? == "step").then_some(())?;
    Some(ImageName { key: parts.next()?.replace('#', "/"), step, wall })
}

#[cfg(test)]
mod tests {
    use super::{ImageName, parse};

    #[test]
    fn names_of_images() {
        let name = |key: &str| Some(ImageName { key: key.to_owned(), step: 7, wall: 1_700_000_000.25 });
        assert_eq!(parse("a#image%step%7%timestamp%1700000000250%i58a4ecc-cb15.png"), name("a/image"));
        assert_eq!(parse("a+step+7+timestamp+1700000000250+i58a4ecc-cb15.jpg"), name("a"));
        assert_eq!(parse("50%%step%7%timestamp%1700000000250%i58a.png"), name("50%"));
        for other in ["a.png", "a%step%x%timestamp%1%id.png", "a%step%7%timestamp%1%id%compressed.webp", "", ".png"] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
