//! The text of an error with its causes.

use std::error::Error;

/// The text of an error, followed by those of its causes that it does not contain already:
/// `transport error: tcp connect error: Connection refused`.
#[must_use]
pub fn all_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let cause_text = error.to_string();
        if !text.contains(&cause_text) {
            text.extend([": ", &cause_text]);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt;

    #[derive(Debug)]
    struct ChainError(&'static str, Option<Box<ChainError>>);

    impl fmt::Display for ChainError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for ChainError {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|cause| cause as &(dyn Error + 'static))
        }
    }

    #[test]
    fn nothing_is_said_twice() {
        let last = ChainError("refused", None);
        let same = ChainError("connect", Some(Box::new(last)));
        let first = ChainError("transport: connect", Some(Box::new(same)));
        assert_eq!(all_causes(&first), "transport: connect: refused");
    }
}
