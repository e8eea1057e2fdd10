//! The least that a reader of event files can do, as a yardstick: one thread, both checksums of each record, no damage, and
//! every point of a scalar kept in three plain columns (20 bytes) that nothing is derived from.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use formats::tfrecord::masked_crc;
use formats::wire::{Fields, Malformed, Value};

use crate::report::BenchError;

/// What is read at a time.
const CHUNK: u64 = 1 << 20;

/// The points of one tag of one file.
#[derive(Default)]
pub struct Column {
    steps: Vec<i64>,
    walls: Vec<f64>,
    values: Vec<f32>,
}

impl Column {
    /// How many points.
    pub fn len(&self) -> usize {
        self.steps.len().min(self.walls.len()).min(self.values.len())
    }
}

/// All points of the runs of a logdir.
pub fn columns(logdir: &Path) -> Result<Vec<Column>, BenchError> {
    let mut columns: Vec<Column> = Vec::new();
    for run in fs::read_dir(logdir)? {
        let mut by_tag: HashMap<Vec<u8>, usize> = HashMap::new();
        records(&run?.path(), |record| {
            let point = point(record)?;
            let idx = match by_tag.get(point.tag) {
                Some(idx) => *idx,
                None => {
                    columns.push(Column::default());
                    by_tag.insert(point.tag.to_vec(), columns.len() - 1);
                    columns.len() - 1
                }
            };
            columns[idx].steps.push(point.step);
            columns[idx].walls.push(point.wall);
            columns[idx].values.push(point.value);
            Ok(())
        })?;
    }
    Ok(columns)
}

struct Point<'a> {
    tag: &'a [u8],
    step: i64,
    wall: f64,
    value: f32,
}

/// The one scalar of an event, of either form.
fn point(record: &[u8]) -> Result<Point<'_>, Malformed> {
    let mut point = Point { tag: &[], step: 0, wall: 0.0, value: 0.0 };
    for field in Fields::new(record) {
        match field? {
            (1, Value::Fixed64(bits)) => point.wall = f64::from_bits(bits),
            (2, Value::Varint(step)) => point.step = step as i64,
            (5, Value::Bytes(summary)) => {
                for value in Fields::new(summary) {
                    if let (1, Value::Bytes(value)) = value? {
                        take_value(value, &mut point)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(point)
}

fn take_value<'a>(value: &'a [u8], point: &mut Point<'a>) -> Result<(), Malformed> {
    for field in Fields::new(value) {
        match field? {
            (1, Value::Bytes(tag)) => point.tag = tag,
            (2, Value::Fixed32(bits)) => point.value = f32::from_bits(bits),
            (8, Value::Bytes(tensor)) => {
                for field in Fields::new(tensor) {
                    if let (4, Value::Bytes(content)) = field? {
                        point.value = f32::from_le_bytes(content.try_into().map_err(|_| Malformed)?);
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Gives each record of the files below a folder, once both its checksums hold; how many there are.
///
/// # Errors
/// A checksum does not hold, or what `take` says.
pub fn records(folder: &Path, mut take: impl FnMut(&[u8]) -> Result<(), BenchError>) -> Result<usize, BenchError> {
    let mut n = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                n += records_of_file(&path, &mut take)?;
            }
        }
    }
    Ok(n)
}

fn records_of_file(path: &Path, take: &mut impl FnMut(&[u8]) -> Result<(), BenchError>) -> Result<usize, BenchError> {
    let mut file = File::open(path)?;
    let (mut bytes, mut n) = (Vec::new(), 0);
    while (&mut file).take(CHUNK).read_to_end(&mut bytes)? > 0 {
        let mut rest = &bytes[..];
        while let Some((header, behind)) = rest.split_at_checked(12) {
            let length = u64::from_le_bytes(header[..8].try_into()?) as usize;
            let Some((frame, behind)) = behind.split_at_checked(length + 4) else { break };
            let (data, crc) = frame.split_at(length);
            if masked_crc(&header[..8]).to_le_bytes() != header[8..] || masked_crc(data).to_le_bytes() != *crc {
                return Err(format!("{}: a bad checksum in a generated log", path.display()).into());
            }
            take(data)?;
            n += 1;
            rest = behind;
        }
        let n_done = bytes.len() - rest.len();
        bytes.drain(..n_done);
    }
    Ok(n)
}
