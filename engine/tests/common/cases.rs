//! Values of TensorFlow's fixtures as tensors and attributes.

use engine::dtype::{Element, f16};
use engine::graph::Attr;
use engine::{DType, Graph, Output, Tensor};
use serde_json::Value;

pub fn list(v: &Value) -> &[Value] {
    v.as_array().map(Vec::as_slice).unwrap_or_default()
}

pub fn number(v: &Value) -> f64 {
    v.as_f64().unwrap_or_else(|| v.as_str().unwrap().parse().unwrap())
}

pub fn tensor(v: &Value) -> Tensor {
    let dims: Vec<usize> = list(&v[1]).iter().map(|d| d.as_u64().unwrap() as usize).collect();
    let values = list(&v[2]);
    fn of<T: Element>(dims: &[usize], values: &[Value], f: impl Fn(&Value) -> T) -> Tensor {
        Tensor::from_vec(dims, values.iter().map(f).collect()).unwrap()
    }
    match v[0].as_str().unwrap() {
        "float" => of(&dims, values, |v| number(v) as f32),
        "double" => of(&dims, values, number),
        "half" => of(&dims, values, |v| f16::from_f64(number(v))),
        "int32" => of(&dims, values, |v| v.as_i64().unwrap() as i32),
        "int64" => of(&dims, values, |v| v.as_i64().unwrap()),
        "uint8" => of(&dims, values, |v| v.as_i64().unwrap() as u8),
        "bool" => of(&dims, values, |v| v.as_i64().unwrap() != 0),
        other => panic!("{other}"),
    }
}

pub fn attr(v: &Value) -> Attr {
    match v {
        Value::Bool(b) => Attr::Bool(*b),
        Value::Number(n) => Attr::Int(n.as_i64().unwrap()),
        Value::Object(o) if o.contains_key("float") => Attr::Float(number(&o["float"]) as f32),
        Value::Object(o) => Attr::from(o["string"].as_str().unwrap()),
        Value::Array(a) if a.first().is_some_and(Value::is_string) => {
            Attr::Type(DType::from_name(a[1].as_str().unwrap()).unwrap())
        }
        Value::Array(a) => Attr::ListInt(a.iter().map(|v| v.as_i64().unwrap()).collect()),
        other => panic!("{other}"),
    }
}

pub fn floats(t: &Tensor) -> Vec<f64> {
    match t.dtype() {
        DType::F32 => t.slice::<f32>().unwrap().iter().map(|v| f64::from(*v)).collect(),
        _ => t.slice::<f64>().unwrap().to_vec(),
    }
}

pub fn name(g: &Graph, o: impl Into<Output>) -> String {
    let o = o.into();
    format!("{}:{}", g.node(o.node).unwrap().name, o.port)
}
