//! The value of a hyperparameter, and its message.

use std::fmt;

use formats::plugins::{HParamType, HParamValue, h_param_value::Kind};

/// The value of a hyperparameter.
#[derive(Debug, Clone, PartialEq)]
pub enum HParam {
    /// A number.
    Number(f64),
    /// A name.
    Text(String),
    /// Yes or no.
    Bool(bool),
}

impl HParam {
    /// Its type in messages.
    pub(super) fn proto_type(&self) -> HParamType {
        match self {
            Self::Number(_) => HParamType::DataTypeFloat64,
            Self::Text(_) => HParamType::DataTypeString,
            Self::Bool(_) => HParamType::DataTypeBool,
        }
    }

    /// Its message.
    pub(super) fn proto(&self) -> HParamValue {
        let kind = match self.clone() {
            Self::Number(value) => Kind::NumberValue(value),
            Self::Text(value) => Kind::StringValue(value),
            Self::Bool(value) => Kind::BoolValue(value),
        };
        HParamValue { kind: Some(kind) }
    }
}

impl From<Kind> for HParam {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::NumberValue(value) => Self::Number(value),
            Kind::StringValue(value) => Self::Text(value),
            Kind::BoolValue(value) => Self::Bool(value),
        }
    }
}

impl fmt::Display for HParam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(value) => write!(f, "{value}"),
            Self::Text(value) => f.write_str(value),
            Self::Bool(value) => write!(f, "{value}"),
        }
    }
}
