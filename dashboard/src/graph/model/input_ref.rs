//! A node's input strings: `^node`, `node`, `node:1`, and in functions `node:out_arg:1`.

/// The producer that an input string refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputRef<'a> {
    pub node: &'a str,
    /// Output of the producer (in functions: within the named output argument).
    pub port: u32,
    pub control: bool,
}

/// Reads an input string. Anything reads as something: a part after `:` that is no number belongs to a function's
/// output argument, or is taken as port 0.
pub fn parse_input(input: &str) -> InputRef<'_> {
    if let Some(node) = input.strip_prefix('^') {
        return InputRef { node, port: 0, control: true };
    }
    let Some((node, rest)) = input.split_once(':') else { return InputRef { node: input, port: 0, control: false } };
    let number = rest.rsplit(':').next().unwrap_or(rest);
    InputRef { node, port: number.parse().unwrap_or(0), control: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        let check = |input, node, port, control| {
            assert_eq!(parse_input(input), InputRef { node, port, control }, "{input}");
        };
        check("a/b", "a/b", 0, false);
        check("a/b:3", "a/b", 3, false);
        check("^a/b", "a/b", 0, true);
        check("cast:y:2", "cast", 2, false);
        check("a:99999999999999", "a", 0, false);
        check("", "", 0, false);
    }
}
