//! What PyTorch's profiler says of an op: arguments of its slice, as Kineto writes them.

use serde::Deserialize;
use serde_json::value::RawValue;

/// The arguments of one execution of an op.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(crate) struct OpArgs<'a> {
    /// Dimensions of each input, as JSON: `[[32, 64], []]`; of a list of tensors a list of lists. Empty of what is no tensor.
    #[serde(borrow, rename = "Input Dims", alias = "Input dims")]
    pub(crate) dims: Option<&'a RawValue>,
    /// The type of each input, as JSON: `["float", "Scalar"]`.
    #[serde(borrow, rename = "Input type")]
    pub(crate) types: Option<&'a RawValue>,
    /// The values of the inputs that are no tensors, as JSON: a text for each input.
    #[serde(borrow, rename = "Concrete Inputs")]
    pub(crate) values: Option<&'a RawValue>,
    /// The number that an op and its gradient share.
    #[serde(rename = "Sequence number")]
    pub(crate) sequence: Option<i64>,
    /// Of a gradient: the number of the thread that ran the op; else 0.
    #[serde(rename = "Fwd thread id", default)]
    forward_thread: i64,
}

impl<'a> OpArgs<'a> {
    /// `None` where the text has nothing of an op.
    pub(crate) fn parse(text: &'a str) -> Option<OpArgs<'a>> {
        if !text.contains("\"Input ") && !text.contains("\"Sequence number\"") {
            return None;
        }
        serde_json::from_str(text).ok()
    }

    /// Whether the execution computes a gradient.
    pub(crate) fn is_gradient(&self) -> bool {
        self.forward_thread != 0 && self.sequence.is_some()
    }

    /// The dimensions of each input; of lists of tensors and of what is no tensor an empty list.
    pub(crate) fn shapes(&self) -> Vec<Vec<i64>> {
        let inputs: Vec<serde_json::Value> = self.dims.map_or_else(Vec::new, parse_or_default);
        inputs.into_iter().map(|dims| serde_json::from_value(dims).unwrap_or_default()).collect()
    }

    /// The values of the inputs that are no tensors.
    pub(crate) fn values(&self) -> Vec<String> {
        self.values.map_or_else(Vec::new, parse_or_default)
    }
}

fn parse_or_default<T: Default + for<'a> Deserialize<'a>>(text: &RawValue) -> T {
    serde_json::from_str(text.get()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kineto_writes_is_read() {
        let text = r#"{"External id": 42, "Sequence number": 56, "Fwd thread id": 0, "Concrete Inputs": ["", "1"],
                       "Input type": ["float", "Scalar"], "Input Dims": [[32, 64], [], [[2], [3]]]}"#;
        let args = OpArgs::parse(text).unwrap();
        assert!(!args.is_gradient() && args.sequence == Some(56));
        assert_eq!(args.shapes(), [vec![32, 64], vec![], vec![]]);
        assert_eq!(args.values(), ["", "1"]);
        assert_eq!(args.dims.unwrap().get(), "[[32, 64], [], [[2], [3]]]");
        assert!(OpArgs::parse(r#"{"Sequence number": 3, "Fwd thread id": 1}"#).unwrap().is_gradient());
        assert!(OpArgs::parse(r#"{"correlation": 3}"#).is_none());
        assert!(OpArgs::parse(r#"{"Input Dims": [[1], "Sequence number""#).is_none());
    }
}
