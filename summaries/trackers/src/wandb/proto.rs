//! The messages of a log, as far as they are read (wandb's proto/wandb_internal.proto, release 0.31.0).

use jiter::JsonValue;

use super::value;

/// One record.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Record {
    #[prost(oneof = "Kind", tags = "2, 3, 5, 7, 10, 17, 18")]
    pub kind: Option<Kind>,
}

/// What a record is.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Kind {
    #[prost(message, tag = "2")]
    History(History),
    #[prost(message, tag = "3")]
    Summary(Update),
    #[prost(message, tag = "5")]
    Config(Update),
    #[prost(message, tag = "7")]
    Stats(Stats),
    #[prost(message, tag = "10")]
    Alert(Alert),
    #[prost(message, tag = "17")]
    Run(Run),
    #[prost(message, tag = "18")]
    Exit(Exit),
}

/// The values of a step.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct History {
    #[prost(message, repeated, tag = "1")]
    pub item: Vec<Item>,
    #[prost(message, optional, tag = "2")]
    pub step: Option<Step>,
}

/// A step.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Step {
    #[prost(int64, tag = "1")]
    pub num: i64,
}

/// A value and its name, which has parts where it is in a dictionary.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Item {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(string, repeated, tag = "2")]
    pub nested_key: Vec<String>,
    /// The value once more, where the setting `x_history_value_encoding` asks for it.
    #[prost(oneof = "Typed", tags = "3, 4, 5, 6, 7, 8")]
    pub typed: Option<Typed>,
    #[prost(string, tag = "16")]
    pub value_json: String,
}

/// A value that is not JSON.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Typed {
    #[prost(int32, tag = "3")]
    None(i32),
    #[prost(bool, tag = "4")]
    Boolean(bool),
    #[prost(sint64, tag = "5")]
    Integer(i64),
    #[prost(double, tag = "6")]
    Number(f64),
    #[prost(string, tag = "7")]
    Text(String),
    #[prost(string, tag = "8")]
    Json(String),
}

/// Changes of the configuration or the summary.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Update {
    #[prost(message, repeated, tag = "1")]
    pub update: Vec<Item>,
    #[prost(message, repeated, tag = "2")]
    pub remove: Vec<Item>,
}

/// Measurements of the machine.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Stats {
    #[prost(message, optional, tag = "2")]
    pub timestamp: Option<Timestamp>,
    #[prost(message, repeated, tag = "3")]
    pub item: Vec<Item>,
}

/// `google.protobuf.Timestamp`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Timestamp {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

/// What `run.alert` sent.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Alert {
    #[prost(string, tag = "1")]
    pub title: String,
    #[prost(string, tag = "2")]
    pub text: String,
    #[prost(string, tag = "3")]
    pub level: String,
}

/// The run.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Run {
    #[prost(message, optional, tag = "4")]
    pub config: Option<Update>,
    #[prost(message, optional, tag = "17")]
    pub start_time: Option<Timestamp>,
}

/// The end of the run.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Exit {}

impl Item {
    /// The parts of the name, joined by `.`.
    pub fn name(&self) -> String {
        if self.nested_key.is_empty() { self.key.clone() } else { self.nested_key.join(".") }
    }

    /// The value; `None` where it is no JSON.
    pub fn value(&self) -> Option<JsonValue<'_>> {
        match &self.typed {
            _ if !self.value_json.is_empty() => value::parse(&self.value_json),
            None => None,
            Some(Typed::None(_)) => Some(JsonValue::Null),
            Some(Typed::Boolean(value)) => Some(JsonValue::Bool(*value)),
            Some(Typed::Integer(value)) => Some(JsonValue::Int(*value)),
            Some(Typed::Number(value)) => Some(JsonValue::Float(*value)),
            Some(Typed::Text(text)) => Some(JsonValue::Str(text.as_str().into())),
            Some(Typed::Json(text)) => value::parse(text),
        }
    }
}

impl Timestamp {
    /// Unix seconds.
    pub fn seconds(&self) -> f64 {
        self.seconds as f64 + f64::from(self.nanos) / 1e9
    }
}
