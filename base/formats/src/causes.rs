//! The text of an error that has others behind it.

use std::error::Error;

/// What an error says, with what those behind it say that it does not: `transport error: tcp connect error: Connection
/// refused`.
#[must_use]
pub fn all_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(behind) = cause {
        let more = behind.to_string();
        if !text.contains(&more) {
            text.extend([": ", &more]);
        }
        cause = behind.source();
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
