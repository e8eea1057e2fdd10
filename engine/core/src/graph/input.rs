//! Inputs as definitions of nodes write them.

use super::ImportError;

/// An input as a `NodeDef` writes it: `node`, `node:port` or `^node`.
pub(super) struct Input<'a> {
    pub node: &'a str,
    /// `None`: a control input.
    pub port: Option<u32>,
}

impl<'a> Input<'a> {
    pub fn parse(of: &str, text: &'a str) -> Result<Input<'a>, ImportError> {
        if let Some(node) = text.strip_prefix('^') {
            return Ok(Input { node, port: None });
        }
        match text.rsplit_once(':') {
            None => Ok(Input { node: text, port: Some(0) }),
            Some((node, port)) => match port.parse() {
                Ok(port) => Ok(Input { node, port: Some(port) }),
                Err(_) => Err(ImportError::BadInput { node: of.to_owned(), input: text.to_owned() }),
            },
        }
    }
}
