//! Attributes from and to TensorFlow's `AttrValue`.

use formats::proto::{AttrValue, NameAttrList, attr_value};

use super::{Attr, FuncRef};
use crate::dtype::DType;
use crate::tensor_proto::{self, TensorProtoError};

fn dtype(number: i32) -> Result<DType, String> {
    DType::from_number_or_reference(number).ok_or_else(|| format!("element type number {number} is not supported"))
}

/// An attribute from what TensorFlow writes.
pub(super) fn from_proto(value: &AttrValue) -> Result<Attr, String> {
    use attr_value::Value;
    let text = |e: TensorProtoError| e.to_string();
    Ok(match value.value.as_ref().ok_or("it has no value")? {
        Value::S(s) => Attr::Str(s.clone()),
        Value::I(i) => Attr::Int(*i),
        Value::F(f) => Attr::Float(*f),
        Value::B(b) => Attr::Bool(*b),
        Value::Type(t) => Attr::Type(dtype(*t)?),
        Value::Shape(s) => Attr::Shape(tensor_proto::shape_from_proto(s).map_err(text)?),
        Value::Tensor(t) => Attr::Tensor(tensor_proto::from_proto(t).map_err(text)?),
        Value::List(l) => list_from_proto(l)?,
        Value::Placeholder(p) => return Err(format!("it is a placeholder ({p}) of a function body")),
        Value::Func(f) => Attr::Func(func_from_proto(f)?),
    })
}

/// A list's kind follows from what it holds; an empty one is taken as a list of integers.
fn list_from_proto(l: &attr_value::ListValue) -> Result<Attr, String> {
    let shapes = || l.shape.iter().map(|s| tensor_proto::shape_from_proto(s).map_err(|e| e.to_string()));
    Ok(if !l.s.is_empty() {
        Attr::ListStr(l.s.clone())
    } else if !l.f.is_empty() {
        Attr::ListFloat(l.f.clone())
    } else if !l.r#type.is_empty() {
        Attr::ListType(l.r#type.iter().map(|t| dtype(*t)).collect::<Result<_, _>>()?)
    } else if !l.shape.is_empty() {
        Attr::ListShape(shapes().collect::<Result<_, _>>()?)
    } else if !l.func.is_empty() {
        Attr::ListFunc(l.func.iter().map(func_from_proto).collect::<Result<_, _>>()?)
    } else if l.b.is_empty() && l.tensor.is_empty() {
        Attr::ListInt(l.i.clone())
    } else {
        return Err("lists of such values are not supported".into());
    })
}

fn func_from_proto(f: &NameAttrList) -> Result<FuncRef, String> {
    let attr = |(name, value): (&String, &AttrValue)| Some((name.clone(), from_proto(value).ok()?));
    // What has no meaning here is no attribute that a body of known ops asks for.
    Ok(FuncRef { name: f.name.as_str().into(), attrs: f.attr.iter().filter_map(attr).collect() })
}

fn func_to_proto(f: &FuncRef) -> NameAttrList {
    let attr = f.attrs.iter().map(|(name, value)| (name.clone(), to_proto(value))).collect();
    NameAttrList { name: f.name.to_string(), attr }
}

/// An attribute as TensorFlow writes it.
pub fn to_proto(attr: &Attr) -> AttrValue {
    use attr_value::{ListValue, Value};
    let list = |l: ListValue| Value::List(l);
    let none = ListValue::default;
    AttrValue {
        value: Some(match attr {
            Attr::Str(s) => Value::S(s.clone()),
            Attr::Int(i) => Value::I(*i),
            Attr::Float(f) => Value::F(*f),
            Attr::Bool(b) => Value::B(*b),
            Attr::Type(t) => Value::Type(tensor_proto::dtype_to_proto(*t)),
            Attr::Shape(s) => Value::Shape(tensor_proto::shape_to_proto(s)),
            Attr::Tensor(t) => Value::Tensor(tensor_proto::to_proto(t)),
            Attr::Func(f) => Value::Func(func_to_proto(f)),
            Attr::ListFunc(v) => list(ListValue { func: v.iter().map(func_to_proto).collect(), ..none() }),
            Attr::ListInt(v) => list(ListValue { i: v.clone(), ..none() }),
            Attr::ListFloat(v) => list(ListValue { f: v.clone(), ..none() }),
            Attr::ListStr(v) => list(ListValue { s: v.clone(), ..none() }),
            Attr::ListType(v) => {
                list(ListValue { r#type: v.iter().map(|t| tensor_proto::dtype_to_proto(*t)).collect(), ..none() })
            }
            Attr::ListShape(v) => {
                list(ListValue { shape: v.iter().map(tensor_proto::shape_to_proto).collect(), ..none() })
            }
        }),
    }
}
