//! Handwritten digits: 8x8 pixels of 0 to 16 and a label of 0 to 9 per line of CSV, gzipped or not.
//!
//! The bundled set has 1,797 images (licence and source next to it in `engine/data`). The split into 4/5 training and
//! 1/5 test images is stratified by label, shuffled, and the same on every machine.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::shuffle::SplitMix64;
use engine_core::tensor::Tensor;

const BUNDLED: &[u8] = include_bytes!("../../data/digits.csv.gz");
/// Pixels of an image.
const N_PIXELS: usize = 64;
/// The largest pixel value: 8x8 blocks of a 32x32 bitmap, each counting its 4x4 dots.
const MAX_PIXEL: f32 = 16.0;
/// Kinds of digits.
const N_LABELS: usize = 10;
/// The seed of the split. Changing it changes every published accuracy.
const SPLIT_SEED: u64 = 0x05CA_1AB1_E5EE_D001;
/// A line of 64 numbers fits many times over; longer ones are another format.
const MAX_LINE: u64 = 64 * 1024;
/// What is read at most, so that a small compressed file cannot fill the memory.
const MAX_ROWS: usize = 10_000_000;

/// Images and labels, split for training and test.
pub struct Digits {
    /// Training images, f32 `[n, 64]`, 0 to 1.
    pub train_x: Tensor,
    /// Their labels, i64 `[n]`, 0 to 9.
    pub train_y: Tensor,
    /// Test images, f32 `[m, 64]`, 0 to 1.
    pub test_x: Tensor,
    /// Their labels, i64 `[m]`, 0 to 9.
    pub test_y: Tensor,
}

/// Why a file is no data set of digits.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// It cannot be opened or read to its end (a gzip file that is cut or damaged, say).
    #[error("{}: {}", path.display(), reason(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system or the decompressor says.
        source: std::io::Error,
    },
    /// A line is not 64 pixels and a label.
    #[error("{}: line {line}, column {column}: {found:?} is not {expected}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// The value's number in its line, counted from 1.
        column: usize,
        /// What stands there (cut to 20 characters).
        found: String,
        /// What should.
        expected: &'static str,
    },
    /// A line has too few or too many values.
    #[error("{}: line {line} has {found} values, expected 64 pixels and a label", path.display())]
    Columns {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// How many values there are.
        found: usize,
    },
    /// There are too few images to train and test with.
    #[error("{}: {n_rows} images; at least 10 are needed{}", path.display(), if *n_rows == 0 { " (the file is empty)" } else { "" })]
    TooFew {
        /// The file.
        path: PathBuf,
        /// How many there are.
        n_rows: usize,
    },
    /// There are more images than this reader takes.
    #[error("{}: more than {MAX_ROWS} images", path.display())]
    TooMany {
        /// The file.
        path: PathBuf,
    },
}

fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".into(),
        std::io::ErrorKind::UnexpectedEof => "the gzip file is cut short".into(),
        std::io::ErrorKind::InvalidData => "the file holds bytes that are no text".into(),
        std::io::ErrorKind::InvalidInput => format!("the gzip file is damaged ({error})"),
        _ => error.to_string(),
    }
}

/// The rows as they are read.
#[derive(Default)]
struct Rows {
    pixels: Vec<f32>,
    labels: Vec<i64>,
}

/// The bundled digits: 1,437 training and 360 test images.
pub fn digits() -> Digits {
    let rows = read(Path::new("the bundled digits"), BUNDLED).expect("the bundled file is read by a test");
    split(&rows)
}

/// Digits from a CSV file, split as the bundled ones are.
///
/// # Errors
/// That the file cannot be read, or holds something else, with the line and column.
pub fn digits_from(path: &Path) -> Result<Digits, DataError> {
    let file = File::open(path).map_err(|source| DataError::Read { path: path.to_owned(), source })?;
    read(path, file).map(|rows| split(&rows))
}

fn read(path: &Path, source: impl Read) -> Result<Rows, DataError> {
    let unreadable = |source| DataError::Read { path: path.to_owned(), source };
    let mut start = BufReader::new(source);
    let gzipped = start.fill_buf().map_err(unreadable)?.starts_with(&[0x1f, 0x8b]);
    let mut lines: Box<dyn BufRead> =
        if gzipped { Box::new(BufReader::new(MultiGzDecoder::new(start))) } else { Box::new(start) };
    let mut rows = Rows::default();
    let mut text = String::new();
    for line in 1.. {
        text.clear();
        if lines.by_ref().take(MAX_LINE).read_line(&mut text).map_err(unreadable)? == 0 {
            break;
        }
        if !text.trim().is_empty() {
            rows.push(path, line, text.trim())?;
        }
    }
    let n_rows = rows.labels.len();
    if n_rows < N_LABELS {
        return Err(DataError::TooFew { path: path.to_owned(), n_rows });
    }
    Ok(rows)
}

impl Rows {
    fn push(&mut self, path: &Path, line: usize, text: &str) -> Result<(), DataError> {
        let found = text.split(',').count();
        let value = |column: usize, found: &str, expected| {
            let found = found.chars().take(20).collect();
            DataError::Value { path: path.to_owned(), line, column, found, expected }
        };
        if found != N_PIXELS + 1 {
            return Err(DataError::Columns { path: path.to_owned(), line, found });
        }
        if self.labels.len() == MAX_ROWS {
            return Err(DataError::TooMany { path: path.to_owned() });
        }
        for (i, field) in text.split(',').map(str::trim).enumerate() {
            if i < N_PIXELS {
                let pixel = field.parse().ok().filter(|p| (0.0..=MAX_PIXEL).contains(p));
                self.pixels.push(pixel.ok_or_else(|| value(i + 1, field, "a pixel (0 to 16)"))? / MAX_PIXEL);
            } else {
                let label = field.parse().ok().filter(|l| (0..N_LABELS as i64).contains(l));
                self.labels.push(label.ok_or_else(|| value(i + 1, field, "a label (0 to 9)"))?);
            }
        }
        Ok(())
    }

    fn tensors(&self, rows: &[usize]) -> (Tensor, Tensor) {
        let pixels = rows.iter().flat_map(|&r| &self.pixels[r * N_PIXELS..(r + 1) * N_PIXELS]).copied().collect();
        let labels = rows.iter().map(|&r| self.labels[r]).collect();
        let fits = "as many values as the shape says";
        let x = Tensor::from_vec([rows.len(), N_PIXELS], pixels).expect(fits);
        (x, Tensor::from_vec([rows.len()], labels).expect(fits))
    }
}

/// A fifth of the images (rounded up) for test, each label by its share, the rest to the labels with the largest
/// remainders; both parts in shuffled order.
fn split(rows: &Rows) -> Digits {
    let mut rng = SplitMix64::new(SPLIT_SEED);
    let mut by_label: Vec<Vec<usize>> = vec![Vec::new(); N_LABELS];
    for (row, &label) in rows.labels.iter().enumerate() {
        by_label[label as usize].push(row);
    }
    let n_test = rows.labels.len().div_ceil(5);
    let mut quota: Vec<usize> = by_label.iter().map(|of| of.len() / 5).collect();
    let mut by_remainder: Vec<usize> = (0..N_LABELS).collect();
    by_remainder.sort_by_key(|&label| std::cmp::Reverse(by_label[label].len() % 5));
    let missing = n_test - quota.iter().sum::<usize>();
    for &label in by_remainder.iter().filter(|&&label| !by_label[label].len().is_multiple_of(5)).take(missing) {
        quota[label] += 1;
    }
    let (mut train, mut test) = (Vec::new(), Vec::new());
    for (of, &n) in by_label.iter_mut().zip(&quota) {
        rng.shuffle(of);
        test.extend_from_slice(&of[..n]);
        train.extend_from_slice(&of[n..]);
    }
    rng.shuffle(&mut train);
    rng.shuffle(&mut test);
    let ((train_x, train_y), (test_x, test_y)) = (rows.tensors(&train), rows.tensors(&test));
    Digits { train_x, train_y, test_x, test_y }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pixel: &str, label: &str) -> String {
        format!("{}{label}\n", format!("{pixel},").repeat(N_PIXELS))
    }

    fn check_error(text: &str, expected: &str) {
        let error = read(Path::new("f.csv"), text.as_bytes()).err().expect("an error");
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn the_bundled_set_is_split_as_published() {
        let digits = digits();
        assert_eq!((digits.train_x.dims(), digits.train_y.dims()), (&[1437, 64][..], &[1437][..]));
        assert_eq!((digits.test_x.dims(), digits.test_y.dims()), (&[360, 64][..], &[360][..]));
        // The test images of each label are a fifth of all (178, 182, 177, ... of the set), to one.
        let all = [178, 182, 177, 183, 181, 182, 181, 179, 174, 180];
        let mut counts = [0usize; N_LABELS];
        digits.test_y.slice::<i64>().unwrap().iter().for_each(|&label| counts[label as usize] += 1);
        for (n, of) in counts.iter().zip(all) {
            assert!((of / 5..=of / 5 + 1).contains(n), "{counts:?}");
        }
        // Pixel sum of the whole set, from the CSV with awk: 561,718 of 16ths.
        let sum = |t: &Tensor| t.slice::<f32>().unwrap().iter().map(|&p| f64::from(p) * 16.0).sum::<f64>();
        assert_eq!(sum(&digits.train_x) + sum(&digits.test_x), 561_718.0);
    }

    #[test]
    fn errors_name_line_and_column() {
        check_error("", "f.csv: 0 images; at least 10 are needed (the file is empty)");
        check_error("1,2,3\n", "f.csv: line 1 has 3 values, expected 64 pixels and a label");
        let good = row("3", "7");
        check_error(&(good.clone() + &row("x", "1")), "f.csv: line 2, column 1: \"x\" is not a pixel (0 to 16)");
        check_error(&(good.clone() + &row("17", "1")), "f.csv: line 2, column 1: \"17\" is not a pixel (0 to 16)");
        check_error(&(good.clone() + &row("nan", "1")), "f.csv: line 2, column 1: \"nan\" is not a pixel (0 to 16)");
        check_error(&(good + &row("1", "10")), "f.csv: line 2, column 65: \"10\" is not a label (0 to 9)");
    }

    #[test]
    fn a_small_set_is_split_too() {
        let text: String = (0..23).map(|i| row("1", &(i % 3).to_string())).collect();
        let digits = split(&read(Path::new("f.csv"), text.as_bytes()).unwrap());
        assert_eq!((digits.train_x.dims()[0], digits.test_x.dims()[0]), (18, 5));
    }
}
