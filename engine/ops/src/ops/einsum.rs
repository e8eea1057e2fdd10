//! The equations of Einstein sums: `bij,bjk->bik`, with `...` for dimensions that broadcast.

use smallvec::SmallVec;

use engine_core::shape::PartialShape;

/// A dimension's name: a letter, or a place within the ellipsis, counted from its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Label {
    Letter(char),
    Ellipsis,
    Broadcast(usize),
}

/// An equation: the labels of each input, and the output's.
#[derive(Debug, Clone)]
pub(crate) struct Equation {
    pub inputs: Vec<Vec<Label>>,
    pub output: Vec<Label>,
}

/// What is wrong with an equation, or with inputs that it does not fit.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum EinsumError {
    #[error("equation {0:?} is not of the form inputs->output with letters and at most one ... each")]
    Syntax(String),
    #[error("the output has label {0} that no input has")]
    Unknown(char),
    #[error("the equation has {expected} inputs, the node {got}")]
    Count { expected: usize, got: usize },
    #[error("input {input} has shape {shape}, the equation gives it {labels} labels")]
    Rank { input: usize, shape: String, labels: usize },
    #[error("label {label} is {a} and {b}")]
    Size { label: String, a: usize, b: usize },
}

fn labels(text: &str) -> Option<Vec<Label>> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            if out.contains(&Label::Ellipsis) {
                return None;
            }
            out.push(Label::Ellipsis);
            rest = after;
        } else if c.is_alphabetic() {
            out.push(Label::Letter(c));
            rest = &rest[c.len_utf8()..];
        } else if c == ' ' {
            rest = &rest[1..];
        } else {
            return None;
        }
    }
    Some(out)
}

impl Equation {
    /// Reads an equation.
    pub fn parse(text: &str) -> Result<Equation, EinsumError> {
        let syntax = || EinsumError::Syntax(text.to_owned());
        let (inputs, output) = text.split_once("->").ok_or_else(syntax)?;
        let inputs = inputs.split(',').map(|i| labels(i).ok_or_else(syntax)).collect::<Result<Vec<_>, _>>()?;
        let output = labels(output).ok_or_else(syntax)?;
        for label in &output {
            match label {
                Label::Letter(c) if !inputs.iter().any(|i| i.contains(label)) => return Err(EinsumError::Unknown(*c)),
                _ => {}
            }
        }
        Ok(Equation { inputs, output })
    }

    /// The labels of input `i` of this rank, the ellipsis resolved.
    pub fn resolved(&self, i: usize, rank: usize, shape: impl Fn() -> String) -> Result<Vec<Label>, EinsumError> {
        let own = &self.inputs[i];
        let wrong = || EinsumError::Rank { input: i, shape: shape(), labels: own.len() };
        let has_ellipsis = own.contains(&Label::Ellipsis);
        let n_named = own.len() - usize::from(has_ellipsis);
        let n_hidden = rank.checked_sub(n_named).filter(|n| has_ellipsis || *n == 0).ok_or_else(wrong)?;
        Ok(expanded(own, n_hidden))
    }

    /// The output's shape as far as it follows from the inputs'.
    pub fn infer(&self, shapes: &[PartialShape]) -> Result<PartialShape, EinsumError> {
        if shapes.len() != self.inputs.len() {
            return Err(EinsumError::Count { expected: self.inputs.len(), got: shapes.len() });
        }
        let mut sizes = Sizes::default();
        for (i, shape) in shapes.iter().enumerate() {
            let Some(dims) = shape.dims() else { return Ok(PartialShape::unknown()) };
            for (label, dim) in self.resolved(i, dims.len(), || shape.to_string())?.iter().zip(dims) {
                sizes.add(*label, *dim)?;
            }
        }
        let dims: Vec<Option<usize>> = self.out_labels(&sizes).iter().map(|l| sizes.of(*l)).collect();
        Ok(PartialShape::new(&dims))
    }

    pub fn out_labels(&self, sizes: &Sizes) -> Vec<Label> {
        let n_hidden = sizes.0.iter().filter(|(l, _)| matches!(l, Label::Broadcast(_))).count();
        expanded(&self.output, n_hidden)
    }
}

fn expanded(labels: &[Label], n_hidden: usize) -> Vec<Label> {
    let each = |l: &Label| -> SmallVec<[Label; 4]> {
        match l {
            Label::Ellipsis => (0..n_hidden).rev().map(Label::Broadcast).collect(),
            other => SmallVec::from_slice(&[*other]),
        }
    };
    labels.iter().flat_map(each).collect()
}

/// How large the dimension of each label is.
#[derive(Default)]
pub struct Sizes(Vec<(Label, Option<usize>)>);

impl Sizes {
    pub fn of(&self, label: Label) -> Option<usize> {
        self.0.iter().find(|(l, _)| *l == label).and_then(|(_, size)| *size)
    }

    pub fn add(&mut self, label: Label, size: Option<usize>) -> Result<(), EinsumError> {
        let Some((_, known)) = self.0.iter_mut().find(|(l, _)| *l == label) else {
            self.0.push((label, size));
            return Ok(());
        };
        let stretches = matches!(label, Label::Broadcast(_));
        *known = match (*known, size) {
            (Some(1), other) | (other, Some(1)) if stretches => other,
            (Some(a), Some(b)) if a != b => return Err(EinsumError::Size { label: format!("{label:?}"), a, b }),
            (a, b) => a.or(b),
        };
        Ok(())
    }
}
