//! The notation of the op tables: one line per op, as in TensorFlow's registrations.
//!
//! ```text
//! inputs -> outputs:  "a: T, b: N * T -> y: float"
//! attributes:         "N: int = 2; T: {float, double} = float; Tidx: type; dims: list(int) = [1, 1]; name: string = ''"
//! ```
//!
//! A variable itself is `v: Ref(T)`. Within braces, `floats`, `ints`, `uints`, `integers`, `reals`, `complexes`, `numbers` and `quantized` stand for several types.

use super::facts::Facts;
use super::{ArgDef, ArgType, Attr, AttrDef, AttrKind, Effect, OpDef, OpKind, ShapeFn};
use crate::buffer::Allocator;
use crate::dtype::DType;
use crate::shape::PartialShape;
use crate::tensor::Tensor;

/// One line of an op table.
#[derive(Clone, Copy)]
pub struct OpSpec {
    pub(super) name: &'static str,
    args: &'static str,
    attrs: &'static str,
    facts: Facts,
    shape_fn: ShapeFn,
}

/// An op without state.
pub const fn op(name: &'static str, args: &'static str, attrs: &'static str, shape_fn: ShapeFn) -> OpSpec {
    OpSpec { name, args, attrs, facts: Facts::of(Effect::None), shape_fn }
}

/// An op that changes what others see, or waits for them: what an op with state is unless its line says less.
pub const fn stateful(name: &'static str, args: &'static str, attrs: &'static str, shape_fn: ShapeFn) -> OpSpec {
    op(name, args, attrs, shape_fn).effect(Effect::Writes)
}

/// An op that draws random numbers.
pub const fn random(name: &'static str, args: &'static str, attrs: &'static str, shape_fn: ShapeFn) -> OpSpec {
    op(name, args, attrs, shape_fn).effect(Effect::Random)
}

/// An op that names or reads state and leaves it as it is.
pub const fn reads(name: &'static str, args: &'static str, attrs: &'static str, shape_fn: ShapeFn) -> OpSpec {
    op(name, args, attrs, shape_fn).effect(Effect::Reads)
}

/// An op that fails unless something holds, and must run to do so.
pub const fn checks(name: &'static str, args: &'static str, attrs: &'static str, shape_fn: ShapeFn) -> OpSpec {
    op(name, args, attrs, shape_fn).effect(Effect::Checks)
}

/// An op on what lives as long as a step.
pub const fn of_step(name: &'static str, args: &'static str, attrs: &'static str, shape_fn: ShapeFn) -> OpSpec {
    op(name, args, attrs, shape_fn).effect(Effect::Step)
}

impl OpSpec {
    /// With this effect.
    pub const fn effect(mut self, effect: Effect) -> OpSpec {
        self.facts.effect = effect;
        self
    }

    /// With this part to play in a graph.
    pub const fn kind(mut self, kind: OpKind) -> OpSpec {
        self.facts.kind = kind;
        self
    }

    /// The order of its two inputs does not change a bit of the result (of a NaN only its payload), whatever their type.
    pub const fn commutes(mut self) -> OpSpec {
        self.facts.commutes = true;
        self
    }

    /// Its output is its first input's memory.
    pub const fn view(mut self) -> OpSpec {
        self.facts.view = true;
        self
    }
}

/// A line of an op table that cannot be parsed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("op {op}: cannot parse {text:?}: expected {expected}")]
pub struct SpecError {
    /// The op.
    pub op: &'static str,
    /// The part that cannot be parsed.
    pub text: String,
    /// What should be there.
    pub expected: &'static str,
}

impl OpSpec {
    /// The op that the line describes.
    ///
    /// # Errors
    /// The line cannot be parsed.
    pub fn parse(&self) -> Result<OpDef, SpecError> {
        let attrs = split(self.attrs, ';').map(|text| self.attr(text)).collect::<Result<Vec<_>, _>>()?;
        let (inputs, outputs) = self.args.split_once("->").ok_or_else(|| self.error(self.args, "inputs -> outputs"))?;
        let args = |list| split(list, ',').map(|text| self.arg(text, &attrs)).collect::<Result<Vec<_>, _>>();
        let (inputs, outputs) = (args(inputs)?, args(outputs)?);
        let Facts { kind, effect, commutes, view } = self.facts;
        Ok(OpDef { name: self.name, inputs, outputs, attrs, kind, effect, commutes, view, shape_fn: self.shape_fn })
    }

    fn error(&self, text: &str, expected: &'static str) -> SpecError {
        SpecError { op: self.name, text: text.to_owned(), expected }
    }

    fn arg(&self, text: &'static str, attrs: &[AttrDef]) -> Result<ArgDef, SpecError> {
        let (name, ty) = text.split_once(':').ok_or_else(|| self.error(text, "name: type"))?;
        let kind_of = |attr: &str| attrs.iter().find(|a| a.name == attr).map(|a| a.kind);
        let ty = ty.trim();
        let of_ref = ty.strip_prefix("Ref(").and_then(|t| t.strip_suffix(')'));
        let (ty, is_ref) = (of_ref.unwrap_or(ty), of_ref.is_some());
        let ty = match ty.split_once('*') {
            Some((n, t)) => {
                let (n, t) = (n.trim(), t.trim());
                match (kind_of(n), kind_of(t), DType::from_name(t)) {
                    (Some(AttrKind::Int), Some(AttrKind::Type), _) => ArgType::Repeat(n, t),
                    (Some(AttrKind::Int), None, Some(dtype)) => ArgType::RepeatFixed(n, dtype),
                    _ => return Err(self.error(text, "int attribute * type attribute")),
                }
            }
            None => match (kind_of(ty), DType::from_name(ty)) {
                (Some(AttrKind::Type), _) => ArgType::Attr(ty),
                (Some(AttrKind::ListType), _) => ArgType::List(ty),
                (None, Some(dtype)) => ArgType::Fixed(dtype),
                _ => return Err(self.error(text, "a type or the name of a type attribute")),
            },
        };
        Ok(ArgDef { name: name.trim(), ty, is_ref })
    }

    fn attr(&self, text: &'static str) -> Result<AttrDef, SpecError> {
        let (name, rest) = text.split_once(':').ok_or_else(|| self.error(text, "name: kind"))?;
        let (kind, default) = match rest.split_once('=') {
            Some((kind, default)) => (kind.trim(), Some(default.trim())),
            None => (rest.trim(), None),
        };
        let mut allowed = Vec::new();
        let kind = match kind {
            "int" => AttrKind::Int,
            "float" => AttrKind::Float,
            "bool" => AttrKind::Bool,
            "string" => AttrKind::Str,
            "type" => AttrKind::Type,
            "shape" => AttrKind::Shape,
            "tensor" => AttrKind::Tensor,
            "list(int)" => AttrKind::ListInt,
            "list(float)" => AttrKind::ListFloat,
            "list(string)" => AttrKind::ListStr,
            "list(type)" => AttrKind::ListType,
            "list(shape)" => AttrKind::ListShape,
            "func" => AttrKind::Func,
            "list(func)" => AttrKind::ListFunc,
            _ => {
                let names = kind.strip_prefix('{').and_then(|k| k.strip_suffix('}'));
                let names = names.ok_or_else(|| self.error(text, "a kind or {types}"))?;
                for name in split(names, ',') {
                    match DType::from_name(name) {
                        Some(dtype) => allowed.push(dtype),
                        None => allowed.extend(group(name).ok_or_else(|| self.error(name, "a type"))?),
                    }
                }
                AttrKind::Type
            }
        };
        let default = default.map(|d| self.default(kind, d)).transpose()?;
        Ok(AttrDef { name: name.trim(), kind, default, allowed })
    }

    fn default(&self, kind: AttrKind, text: &'static str) -> Result<Attr, SpecError> {
        let value = match (kind, text) {
            (AttrKind::Int, _) => text.parse().ok().map(Attr::Int),
            (AttrKind::Float, _) => text.parse().ok().map(Attr::Float),
            (AttrKind::Bool, _) => text.parse().ok().map(Attr::Bool),
            (AttrKind::Str, _) => {
                text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')).map(|t| Attr::Str(t.into()))
            }
            (AttrKind::Type, _) => DType::from_name(text).map(Attr::Type),
            (AttrKind::Tensor, _) => vector(text).map(Attr::Tensor),
            (AttrKind::Shape, "[]") => Some(Attr::Shape(PartialShape::scalar())),
            (AttrKind::Shape, "unknown") => Some(Attr::Shape(PartialShape::unknown())),
            (AttrKind::ListInt, _) => ints(text).map(Attr::ListInt),
            (AttrKind::ListFloat, "[]") => Some(Attr::ListFloat(Vec::new())),
            (AttrKind::ListStr, "[]") => Some(Attr::ListStr(Vec::new())),
            (AttrKind::ListType, "[]") => Some(Attr::ListType(Vec::new())),
            (AttrKind::ListShape, "[]") => Some(Attr::ListShape(Vec::new())),
            _ => None,
        };
        value.ok_or_else(|| self.error(text, "a default of the attribute's kind"))
    }
}

/// The types that a word within braces stands for.
fn group(word: &str) -> Option<Vec<DType>> {
    use DType as D;
    let ints: &[DType] = &[D::I8, D::I16, D::I32, D::I64];
    let uints: &[DType] = &[D::U8, D::U16, D::U32, D::U64];
    Some(match word {
        "floats" => D::FLOATS.to_vec(),
        "ints" => ints.to_vec(),
        "uints" => uints.to_vec(),
        "integers" => D::INTEGERS.to_vec(),
        "complexes" => D::COMPLEX.to_vec(),
        "quantized" => D::QUANTIZED.to_vec(),
        "reals" => [D::FLOATS, D::INTEGERS].concat(),
        "numbers" => [D::FLOATS, D::INTEGERS, D::COMPLEX].concat(),
        _ => return None,
    })
}

/// `[1, 2, 3]`.
fn ints(text: &'static str) -> Option<Vec<i64>> {
    let list = text.strip_prefix('[')?.strip_suffix(']')?;
    split(list, ',').map(|number| number.parse().ok()).collect()
}

/// A vector as `uint8[255,0,0,255]`.
fn vector(text: &str) -> Option<Tensor> {
    let (dtype, values) = text.strip_suffix(']')?.split_once('[')?;
    let values = values.split(',').map(|value| value.trim().parse().ok()).collect::<Option<Vec<f64>>>()?;
    let vector = Tensor::vector(&values);
    crate::convert::convert(&vector, DType::from_name(dtype)?, Allocator::host()).ok()
}

/// The non-empty parts of a list, trimmed. Separators within braces or parentheses do not separate.
fn split(list: &'static str, separator: char) -> impl Iterator<Item = &'static str> {
    let mut depth = 0;
    let parts = list.split(move |c| {
        depth += i32::from(matches!(c, '{' | '(')) - i32::from(matches!(c, '}' | ')'));
        c == separator && depth == 0
    });
    parts.map(str::trim).filter(|p| !p.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_registered_line_parses() {
        for spec in super::super::OP_TABLES.iter().flat_map(|t| t.iter()) {
            if let Err(e) = spec.parse() {
                panic!("{e}");
            }
        }
    }

    #[test]
    fn a_line_becomes_an_op() {
        let spec = op(
            "X",
            "a: T, rest: N * T, mixed: Ts -> y: float",
            "N: int = 2; T: {float, double} = float; Ts: list(type) = []; s: string = 'hi'",
            |_| Ok(()),
        );
        let def = spec.parse().unwrap();
        assert_eq!(def.inputs[1].ty, ArgType::Repeat("N", "T"));
        assert_eq!(def.inputs[2].ty, ArgType::List("Ts"));
        assert_eq!(def.outputs[0].ty, ArgType::Fixed(DType::F32));
        assert_eq!(def.attrs[1].allowed, [DType::F32, DType::F64]);
        assert_eq!(def.attrs[3].default, Some(Attr::Str(b"hi".to_vec())));
        let groups = op("X", "a: T ->", "T: {floats, int32, complexes}", |_| Ok(())).parse().unwrap();
        assert_eq!(groups.attrs[0].allowed.len(), 7);
        let bad = op("X", "a: T -> y: float", "", |_| Ok(())).parse().unwrap_err();
        assert_eq!(bad.to_string(), r#"op X: cannot parse "a: T": expected a type or the name of a type attribute"#);
    }
}
