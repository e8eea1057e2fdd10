//! Functions as definitions write them: what their bodies leave open, and nodes whose op is a function.

use std::collections::BTreeMap;

use formats::proto::{AttrValue, FunctionDef, NameAttrList, NodeDef, OpDef, attr_value, op_def};

use super::FunctionError;

/// Attributes by name.
pub type Attrs = BTreeMap<String, AttrValue>;

/// The attributes that a body leaves open.
pub struct Open<'a> {
    /// The function's name.
    pub function: &'a str,
    /// Its signature, with the attributes' defaults.
    pub declared: &'a OpDef,
    /// The attributes that the call gives.
    pub given: &'a Attrs,
}

impl Open<'_> {
    /// An error about the body.
    pub fn body(&self, problem: String) -> FunctionError {
        FunctionError::Body { function: self.function.to_owned(), problem }
    }

    fn value(&self, name: &str) -> Result<&AttrValue, FunctionError> {
        let default = || self.declared.attr.iter().find(|a| a.name == name).and_then(|a| a.default_value.as_ref());
        let missing = || self.body(format!("attribute {name} is not given"));
        self.given.get(name).or_else(default).ok_or_else(missing)
    }

    /// `value` with the given values in the place of placeholders.
    pub fn fill(&self, value: &AttrValue) -> Result<AttrValue, FunctionError> {
        use attr_value::Value;
        let func = |f: &NameAttrList| -> Result<NameAttrList, FunctionError> {
            let attr = f.attr.iter().map(|(name, value)| Ok((name.clone(), self.fill(value)?)));
            Ok(NameAttrList { name: f.name.clone(), attr: attr.collect::<Result<_, FunctionError>>()? })
        };
        let value = match &value.value {
            Some(Value::Placeholder(name)) => return self.value(name).cloned(),
            Some(Value::Func(f)) => Some(Value::Func(func(f)?)),
            Some(Value::List(list)) if !list.func.is_empty() => {
                let functions = list.func.iter().map(func).collect::<Result<_, _>>()?;
                Some(Value::List(attr_value::ListValue { func: functions, ..list.clone() }))
            }
            other => other.clone(),
        };
        Ok(AttrValue { value })
    }

    fn int(&self, name: &str) -> Result<usize, FunctionError> {
        match &self.value(name)?.value {
            Some(attr_value::Value::I(n)) if (0..=65_535).contains(n) => Ok(*n as usize),
            _ => Err(self.body(format!("attribute {name} is not a number from 0 to 65535"))),
        }
    }

    /// The element types of an argument or result of the signature, by number.
    pub fn types(&self, arg: &op_def::ArgDef) -> Result<Vec<i32>, FunctionError> {
        use attr_value::Value;
        if !arg.type_list_attr.is_empty() {
            return match &self.value(&arg.type_list_attr)?.value {
                Some(Value::List(list)) => Ok(list.r#type.clone()),
                _ => Err(self.body(format!("attribute {} is not a list of types", arg.type_list_attr))),
            };
        }
        let one = match self.declared_type(arg)? {
            Some(one) => one,
            None => arg.r#type,
        };
        let n = if arg.number_attr.is_empty() { 1 } else { self.int(&arg.number_attr)? };
        Ok(vec![one; n])
    }

    fn declared_type(&self, arg: &op_def::ArgDef) -> Result<Option<i32>, FunctionError> {
        if arg.type_attr.is_empty() {
            return Ok(None);
        }
        match &self.value(&arg.type_attr)?.value {
            Some(attr_value::Value::Type(t)) => Ok(Some(*t)),
            _ => Err(self.body(format!("attribute {} is not a type", arg.type_attr))),
        }
    }
}

/// A node whose op is a function of the library, as a call of that function.
///
/// # Errors
/// The node leaves attributes of the function open.
pub(super) fn as_call(function: &FunctionDef, node: &NodeDef) -> Result<NodeDef, FunctionError> {
    use attr_value::{ListValue, Value};
    let default = OpDef::default();
    let signature = function.signature.as_ref().unwrap_or(&default);
    let open = Open { function: &signature.name, declared: signature, given: &node.attr };
    let types = |args: &[op_def::ArgDef]| -> Result<AttrValue, FunctionError> {
        let types = args.iter().map(|arg| open.types(arg)).collect::<Result<Vec<_>, _>>()?.concat();
        Ok(AttrValue { value: Some(Value::List(ListValue { r#type: types, ..Default::default() })) })
    };
    let declared = |name: &str| signature.attr.iter().any(|a| a.name == name);
    let (own, others): (Attrs, Attrs) = node.attr.clone().into_iter().partition(|(name, _)| declared(name));
    let mut attr: Attrs = others.into_iter().filter(|(name, _)| name.starts_with('_')).collect();
    attr.insert("Tin".into(), types(&signature.input_arg)?);
    attr.insert("Tout".into(), types(&signature.output_arg)?);
    let f = NameAttrList { name: signature.name.clone(), attr: own };
    attr.insert("f".into(), AttrValue { value: Some(Value::Func(f)) });
    let op = if signature.is_stateful { "StatefulPartitionedCall" } else { "PartitionedCall" };
    Ok(NodeDef { op: op.to_owned(), attr, ..node.clone() })
}
