//! Arguments of slices, as C passes them, as the text of a JSON object.

use std::ffi::c_char;

use events::record::MAX_TEXT;

use crate::errors::{self, Error};

/// The value of an argument is its `integer`.
pub const STEPSCOPE_INTEGER: u32 = 0;
/// The value of an argument is its `number`.
pub const STEPSCOPE_NUMBER: u32 = 1;
/// The value of an argument is its `text`.
pub const STEPSCOPE_TEXT: u32 = 2;

/// An argument of a slice; `stepscope_integer`, `stepscope_number` and `stepscope_text` make one.
#[repr(C)]
pub struct stepscope_arg {
    /// The name, UTF-8.
    pub name: *const c_char,
    /// Which of the next three is the value: `STEPSCOPE_INTEGER`, `STEPSCOPE_NUMBER` or `STEPSCOPE_TEXT`.
    pub kind: u32,
    /// A whole number.
    pub integer: i64,
    /// A number.
    pub number: f64,
    /// A text, UTF-8.
    pub text: *const c_char,
}

/// The arguments as a JSON object; empty without arguments. Those that do not fit into an event's text are left out.
///
/// # Safety
/// As for [`stepscope_close_with`](crate::slices::stepscope_close_with).
pub(crate) unsafe fn json(args: *const stepscope_arg, n_args: usize) -> Result<String, Error> {
    if n_args == 0 {
        return Ok(String::new());
    }
    if args.is_null() {
        return Err("the arguments are a null pointer".into());
    }
    // SAFETY: not null, and `n_args` long, as the caller promises.
    let args = unsafe { std::slice::from_raw_parts(args, n_args) };
    let mut json = String::from("{");
    for arg in args {
        // SAFETY: as the caller promises.
        let member = unsafe { member(arg) }?;
        if json.len() + member.len() + 2 <= MAX_TEXT {
            if json.len() > 1 {
                json.push(',');
            }
            json.push_str(&member);
        }
    }
    json.push('}');
    Ok(json)
}

/// `"name":value`.
///
/// # Safety
/// The argument's texts are null, or end with a zero byte.
unsafe fn member(arg: &stepscope_arg) -> Result<String, Error> {
    // SAFETY: as the caller promises.
    let name = serde_json::to_string(unsafe { errors::text(arg.name, "argument's name") }?)?;
    let value = match arg.kind {
        STEPSCOPE_INTEGER => arg.integer.to_string(),
        STEPSCOPE_NUMBER if arg.number.is_finite() => serde_json::to_string(&arg.number)?,
        // JSON has no infinity.
        STEPSCOPE_NUMBER => format!("\"{}\"", arg.number),
        // SAFETY: as the caller promises.
        STEPSCOPE_TEXT => serde_json::to_string(unsafe { errors::text(arg.text, "argument's text") }?)?,
        kind => return Err(format!("the argument {name} is of kind {kind}, which does not exist").into()),
    };
    Ok(format!("{name}:{value}"))
}
