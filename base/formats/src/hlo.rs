//! Programs of the XLA compiler, generated from `proto/xla/hlo.proto`, and what their instructions are called.

// The generated code: its documentation is the comments of the .proto file, which do not cover every field.
#[allow(missing_docs, unused_qualifications, clippy::all)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/xla.rs"));
}

pub use generated::*;

/// Instructions that compute each element of the result from one element of each operand (`HloInstruction::IsElementwise`
/// of XLA), without those that are called `data formatting`.
const ELEMENTWISE: [&str; 58] = [
    "abs",
    "acos",
    "acosh",
    "add",
    "and",
    "asin",
    "asinh",
    "atan2",
    "atanh",
    "bitcast-convert",
    "cbrt",
    "ceil",
    "clamp",
    "compare",
    "complex",
    "convert",
    "cosh",
    "cosine",
    "count-leading-zeros",
    "divide",
    "erf",
    "exponential",
    "exponential-minus-one",
    "floor",
    "imag",
    "is-finite",
    "log",
    "log-plus-one",
    "logistic",
    "map",
    "maximum",
    "minimum",
    "multiply",
    "negate",
    "not",
    "or",
    "popcnt",
    "power",
    "real",
    "reduce-precision",
    "remainder",
    "rng",
    "round-nearest-afz",
    "round-nearest-even",
    "rsqrt",
    "select",
    "shift-left",
    "shift-right-arithmetic",
    "shift-right-logical",
    "sign",
    "sine",
    "sinh",
    "sqrt",
    "stochastic-convert",
    "subtract",
    "tan",
    "tanh",
    "xor",
];

/// The category of an instruction, as XLA's profilers call it (`HloInstruction::ToCategory`): `loop fusion`,
/// `convolution`, `data formatting`.
#[must_use]
pub fn category(instruction: &HloInstructionProto) -> String {
    let opcode = instruction.opcode.as_str();
    match opcode {
        "fusion" => match instruction.fusion_kind.strip_prefix('k') {
            Some(kind) => format!("{} fusion", kind.to_ascii_lowercase()),
            None => opcode.to_owned(),
        },
        "convolution" => {
            let dimensions = || instruction.window.iter().flat_map(|window| &window.dimensions);
            let base = if dimensions().any(|d| d.base_dilation > 1) { " base-dilated" } else { "" };
            let window = if dimensions().any(|d| d.window_dilation > 1) { " window-dilated" } else { "" };
            format!("convolution{base}{window}")
        }
        "transpose" | "copy" | "reshape" | "dynamic-reshape" => "data formatting".to_owned(),
        _ if ELEMENTWISE.contains(&opcode) => "non-fusion elementwise".to_owned(),
        _ => opcode.to_owned(),
    }
}

/// The name of an instruction below the scopes of the framework's op: `jit(train)/layer/dot_general/fusion.3`; below the
/// module where the framework has no name for it.
#[must_use]
pub fn node_name(module: &str, op_name: &str, instruction: &str) -> String {
    let scope = if op_name.is_empty() { module } else { op_name.trim_end_matches(['/', ':']) };
    let instruction = instruction.trim_start_matches('%');
    if scope.is_empty() { instruction.to_owned() } else { format!("{scope}/{instruction}") }
}

/// File and line of the program that an instruction comes from; `None` where the compiler did not keep them.
#[must_use]
pub fn source<'a>(metadata: &'a OpMetadata, frames: Option<&'a StackFrameIndexProto>) -> Option<(&'a str, i32)> {
    if !metadata.source_file.is_empty() {
        return Some((&metadata.source_file, metadata.source_line));
    }
    fn at<T>(list: &[T], position: i32) -> Option<&T> {
        list.get(usize::try_from(position).ok()?.checked_sub(1)?)
    }
    let frames = frames?;
    let location = at(&frames.file_locations, at(&frames.stack_frames, metadata.stack_frame_id)?.file_location_id)?;
    Some((at(&frames.file_names, location.file_name_id)?, location.line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_of_instructions() {
        let instruction = |opcode: &str, fusion_kind: &str| HloInstructionProto {
            opcode: opcode.to_owned(),
            fusion_kind: fusion_kind.to_owned(),
            ..HloInstructionProto::default()
        };
        for (opcode, kind, expected) in [
            ("fusion", "kLoop", "loop fusion"),
            ("fusion", "kCustom", "custom fusion"),
            ("copy", "", "data formatting"),
            ("tanh", "", "non-fusion elementwise"),
            ("custom-call", "", "custom-call"),
            ("convolution", "", "convolution"),
        ] {
            assert_eq!(category(&instruction(opcode, kind)), expected);
        }
        let dilated = WindowDimension { window_dilation: 1, base_dilation: 2 };
        let window = Some(Window { dimensions: vec![dilated] });
        let convolution = HloInstructionProto { window, ..instruction("convolution", "") };
        assert_eq!(category(&convolution), "convolution base-dilated");
    }

    #[test]
    fn a_stack_frame_stands_for_file_and_line() {
        use stack_frame_index_proto::{FileLocation, StackFrame};
        let frames = StackFrameIndexProto {
            file_names: vec!["a.py".to_owned()],
            file_locations: vec![FileLocation { file_name_id: 1, line: 7 }],
            stack_frames: vec![StackFrame { file_location_id: 1 }, StackFrame { file_location_id: 9 }],
        };
        let at = |stack_frame_id| OpMetadata { stack_frame_id, ..OpMetadata::default() };
        assert_eq!(source(&at(1), Some(&frames)), Some(("a.py", 7)));
        assert_eq!([2, 0, -1, 5].map(|id| source(&at(id), Some(&frames)).is_some()), [false; 4]);
        assert_eq!(node_name("jit_f", "jit(f)/add:", "%fusion.1"), "jit(f)/add/fusion.1");
        assert_eq!(node_name("jit_f", "", "tuple"), "jit_f/tuple");
    }
}
