//! A node's input strings: `^node`, `node`, `node:1`, and in functions `node:out_arg:1`.

/// The producer that an input string refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputRef<'a> {
    pub node: &'a str,
    /// Output of the producer (in functions: within the named output argument).
    pub port: u32,
    /// Whether the input is a control input.
    pub is_control: bool,
}

/// Parses an input string and never fails: a part after `:` that is no number is the name of a function's output
/// argument, and the port is then 0 unless a number follows.
pub fn parse_input(input: &str) -> InputRef<'_> {
    if let Some(node) = input.strip_prefix('^') {
        return InputRef { node, port: 0, is_control: true };
    }
    let Some((node, rest)) = input.split_once(':') else { return InputRef { node: input, port: 0, is_control: false } };
    let number = rest.rsplit(':').next().unwrap_or(rest);
    InputRef { node, port: number.parse().unwrap_or(0), is_control: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let check = |input, node, port, is_control| {
            assert_eq!(parse_input(input), InputRef { node, port, is_control }, "{input}");
        };
        check("a/b", "a/b", 0, false);
        check("a/b:3", "a/b", 3, false);
        check("^a/b", "a/b", 0, true);
        check("cast:y:2", "cast", 2, false);
        check("a:99999999999999", "a", 0, false);
        check("", "", 0, false);
    }
}
