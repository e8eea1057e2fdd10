//! Numbers and conditions as C text.

use std::ops::{Add, BitAnd, BitOr, Div, Mul, Neg, Not, Sub};

/// How tightly operators bind, the loosest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Or,
    And,
    Comparison,
    Sum,
    Product,
    Sign,
    /// No operator, or brackets around it.
    Atom,
}

/// The C text of a number of type `C`, or of a condition.
///
/// Texts are leaked, so that they are copied as numbers are. There are few: each formula of the table is written once.
#[derive(Debug, Clone, Copy)]
pub struct Source {
    pub text: &'static str,
    /// Of its outermost operator.
    level: Level,
}

impl Source {
    fn new(text: String, level: Level) -> Source {
        Source { text: text.leak(), level }
    }

    /// What needs no brackets: a name, a constant, a call.
    pub fn atom(text: String) -> Source {
        Source::new(text, Level::Atom)
    }

    /// `condition ? then : otherwise`
    pub fn conditional(condition: Source, then: Source, otherwise: Source) -> Source {
        Source::atom(format!("({} ? {} : {})", condition.text, then.text, otherwise.text))
    }

    /// Two numbers compared.
    pub fn compared(self, operator: &str, other: Source) -> Source {
        self.infix(operator, Level::Comparison, other)
    }

    fn infix(self, operator: &str, level: Level, other: Source) -> Source {
        let (left, right) = (self.bracketed(self.level < level), other.bracketed(other.level <= level));
        Source::new(format!("{left} {operator} {right}"), level)
    }

    fn prefix(self, operator: &str) -> Source {
        Source::new(format!("{operator}{}", self.bracketed(self.level <= Level::Sign)), Level::Sign)
    }

    fn bracketed(self, is_loose: bool) -> String {
        if is_loose { format!("({})", self.text) } else { self.text.to_owned() }
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $operator:literal $level:ident;)+) => { $(
        impl $trait for Source {
            type Output = Source;
            fn $method(self, other: Source) -> Source {
                self.infix($operator, Level::$level, other)
            }
        }
    )+ };
}
operators! {
    Add add "+" Sum;
    Sub sub "-" Sum;
    Mul mul "*" Product;
    Div div "/" Product;
    BitAnd bitand "&&" And;
    BitOr bitor "||" Or;
}

impl Neg for Source {
    type Output = Source;
    fn neg(self) -> Source {
        self.prefix("-")
    }
}

impl Not for Source {
    type Output = Source;
    fn not(self) -> Source {
        self.prefix("!")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_stand_where_c_needs_them() {
        let [a, b, c] = ["a", "b", "c"].map(|name| Source::atom(name.to_owned()));
        assert_eq!((a - b - c).text, "a - b - c");
        assert_eq!((a - (b - c)).text, "a - (b - c)");
        assert_eq!(((a + b) * c / a).text, "(a + b) * c / a");
        assert_eq!((-a * b).text, "-a * b");
        assert_eq!((-(-a)).text, "-(-a)");
        assert_eq!((!(a.compared("==", b) | c)).text, "!(a == b || c)");
        let positive = a.compared(">", b) & b.compared(">", c);
        assert_eq!((Source::conditional(positive, a + b, c) * c).text, "(a > b && b > c ? a + b : c) * c");
    }
}
