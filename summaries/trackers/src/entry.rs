//! One logged value.

use std::collections::BTreeMap;

/// A value under a tag, as a tool logged it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The name under which it is shown; `/` separates groups.
    pub tag: String,
    /// The x axis: the program's step.
    pub step: i64,
    /// Unix seconds at which it was logged; 0 where the tool does not say.
    pub wall: f64,
    /// The value.
    pub value: Value,
}

/// What is logged under a tag.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number, NaN and infinities included.
    Scalar(f64),
    /// A histogram in the order of its buckets.
    Histogram(Vec<Bucket>),
    /// An image: a PNG, JPEG, GIF or WebP file, and its width and height in pixels (0 where unknown).
    Image {
        /// The file's bytes.
        file: Vec<u8>,
        /// Pixels.
        size: (u32, u32),
    },
    /// A sound: a WAV file.
    Audio(Vec<u8>),
    /// A text, shown as Markdown.
    Text(String),
    /// A table of texts, row by row; the first row has the titles.
    Table {
        /// The number of columns.
        n_columns: usize,
        /// The cells, row by row.
        cells: Vec<String>,
    },
    /// Hyperparameters; the tag is empty.
    Params(BTreeMap<String, Param>),
}

/// A bucket of a histogram.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    /// Its lower edge.
    pub left: f64,
    /// Its upper edge.
    pub right: f64,
    /// The number of values in it.
    pub count: f64,
}

/// The value of a hyperparameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Param {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// Yes or no.
    Bool(bool),
}
