//! Logs that no run wrote, chunk by chunk.

use std::{fs, ops::Range, path::Path};

use prost::Message as _;

const BLOCK: usize = 32 << 10;
const HEADER: usize = 7;

#[derive(Clone, PartialEq, prost::Message)]
struct Record {
    #[prost(message, optional, tag = "2")]
    history: Option<History>,
    #[prost(message, optional, tag = "10")]
    alert: Option<Alert>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct History {
    #[prost(message, repeated, tag = "1")]
    item: Vec<Item>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Item {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "16")]
    value_json: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Alert {
    #[prost(string, tag = "1")]
    title: String,
}

/// A log, and where its records are.
pub struct Log {
    pub bytes: Vec<u8>,
    pub records: Vec<Range<usize>>,
}

impl Log {
    pub fn new() -> Self {
        Self { bytes: b":W&B\xe1\xbe\x00".to_vec(), records: Vec::new() }
    }

    /// Adds a row of the history.
    pub fn row(mut self, step: i64, values: &[(&str, &str)]) -> Self {
        let step = ("_step", &*step.to_string());
        let item = |(key, json): &(&str, &str)| Item { key: (*key).to_owned(), value_json: (*json).to_owned() };
        let item = std::iter::once(&step).chain(values).map(item).collect();
        self.record(&Record { history: Some(History { item }), alert: None }.encode_to_vec());
        self
    }

    pub fn alert(mut self, title: &str) -> Self {
        self.record(&Record { history: None, alert: Some(Alert { title: title.to_owned() }) }.encode_to_vec());
        self
    }

    /// Adds a record in as many chunks as it needs.
    pub fn record(&mut self, mut data: &[u8]) {
        let begin = self.bytes.len();
        let mut is_first = true;
        loop {
            let mut left = BLOCK - self.bytes.len() % BLOCK;
            if left < HEADER {
                self.bytes.resize(self.bytes.len() + left, 0);
                left = BLOCK;
            }
            let (part, rest) = data.split_at(data.len().min(left - HEADER));
            let kind = match (is_first, rest.is_empty()) {
                (true, true) => 1,
                (true, false) => 2,
                (false, false) => 3,
                (false, true) => 4,
            };
            let mut hasher = crc32fast::Hasher::new();
            hasher.update(&[kind]);
            hasher.update(part);
            self.bytes.extend(hasher.finalize().to_le_bytes());
            self.bytes.extend((part.len() as u16).to_le_bytes());
            self.bytes.push(kind);
            self.bytes.extend(part);
            (data, is_first) = (rest, false);
            if data.is_empty() {
                self.records.push(begin..self.bytes.len());
                return;
            }
        }
    }

    pub fn write(&self, path: &Path) {
        fs::write(path, &self.bytes).unwrap();
    }
}
