//! Converts programs of the XLA compiler to GraphDefs, so that the same tools show both. Ops are HLO's opcodes.
//!
//! A node is an instruction, below the scopes of the framework's op ([`hlo::node_name`]): the same name that the
//! instruction's executions have in a trace. The computation of a fusion, a loop or a branch is named below the
//! instruction that calls it; its parameters have the caller's operands for inputs. A computation that several
//! instructions call is written for the first. Those that reduce, sort or scatter two elements are left out.

use std::collections::{BTreeMap, HashMap, HashSet};

use prost::Message;

use crate::{
    hlo::{self, HloComputationProto, HloInstructionProto, HloModuleProto, HloProto, ShapeProto},
    profile::{XPlane, x_stat},
    proto::{AttrValue, DataType, GraphDef, NodeDef, TensorShapeProto, attr_value, tensor_shape_proto::Dim},
    wire::{Fields, Value as Wire},
};

/// The plane of an XSpace with the programs.
const METADATA_PLANE: &str = "/host:metadata";
/// The deepest nesting of computations; deeper ones are left out. Programs have about six levels.
const MAX_DEPTH: usize = 32;
/// Opcodes whose computation combines two elements.
const COMBINERS: [&str; 10] = [
    "all-reduce",
    "all-reduce-start",
    "map",
    "reduce",
    "reduce-scatter",
    "reduce-window",
    "scatter",
    "select-and-scatter",
    "sort",
    "topk",
];

/// The graph of an HloProto, or of all programs in an XSpace; `None` where the bytes are neither or have no instruction.
pub(crate) fn decode(bytes: &[u8]) -> Option<GraphDef> {
    let has_instructions = |module: &HloModuleProto| {
        let mut instructions = module.computations.iter().flat_map(|computation| &computation.instructions);
        instructions.next().is_some_and(|first| !first.opcode.is_empty())
    };
    let module = || HloProto::decode(bytes).ok()?.hlo_module.filter(has_instructions);
    let in_space = || {
        // Field by field: a trace may have gigabytes of events, and only one plane has programs.
        let planes = Fields::new(bytes).map_while(Result::ok).filter_map(|field| match field {
            (1, Wire::Bytes(plane)) if is_named(plane, METADATA_PLANE) => XPlane::decode(plane).ok(),
            _ => None,
        });
        let modules: Vec<HloModuleProto> = planes.flat_map(|plane| modules(&plane)).filter(has_instructions).collect();
        (!modules.is_empty()).then_some(modules)
    };
    let modules = module().map(|module| vec![module]).or_else(in_space)?;
    Some(to_graph_def(&modules))
}

/// Whether a plane has a name; it stands in one of the first two fields.
fn is_named(plane: &[u8], name: &str) -> bool {
    let mut fields = Fields::new(plane).map_while(Result::ok).take(2);
    fields.any(|field| matches!(field, (2, Wire::Bytes(found)) if found == name.as_bytes()))
}

/// The programs in a plane.
fn modules(plane: &XPlane) -> Vec<HloModuleProto> {
    let is_program = |id| plane.stat_metadata.get(&id).is_some_and(|stat| stat.name.eq_ignore_ascii_case("hlo proto"));
    let stats = plane.event_metadata.values().flat_map(|metadata| &metadata.stats);
    let programs = stats.filter(|stat| is_program(stat.metadata_id)).filter_map(|stat| match &stat.value {
        Some(x_stat::Value::BytesValue(bytes)) => HloProto::decode(&**bytes).ok()?.hlo_module,
        _ => None,
    });
    programs.collect()
}

fn to_graph_def(modules: &[HloModuleProto]) -> GraphDef {
    let mut names = HashSet::new();
    let mut nodes = Vec::new();
    for module in modules {
        let computations = module.computations.iter().map(|computation| (computation.id, computation)).collect();
        let mut writer = Writer { module, computations, written: HashSet::new(), names: &mut names, nodes: &mut nodes };
        let is_entry = |c: &&HloComputationProto| match module.entry_computation_id {
            0 => c.name == module.entry_computation_name,
            id => c.id == id,
        };
        if let Some(entry) = module.computations.iter().find(is_entry).or(module.computations.last()) {
            writer.written.insert(entry.id);
            writer.write(entry, None, &[], 0);
        }
    }
    GraphDef { node: nodes, ..GraphDef::default() }
}

struct Writer<'a> {
    module: &'a HloModuleProto,
    computations: HashMap<i64, &'a HloComputationProto>,
    /// The ids of the computations that are written.
    written: HashSet<i64>,
    /// The names of all nodes.
    names: &'a mut HashSet<String>,
    nodes: &'a mut Vec<NodeDef>,
}

impl<'a> Writer<'a> {
    /// Writes a computation: the entry, or one below its caller, whose inputs are those of the parameters.
    fn write(&mut self, computation: &'a HloComputationProto, scope: Option<&str>, outer: &[String], depth: usize) {
        // All instructions are named before any input is resolved: a damaged program may use one before it is made.
        let mut names: HashMap<i64, String> = HashMap::new();
        for instruction in &computation.instructions {
            let name = match scope {
                Some(scope) => format!("{scope}/{}", instruction.name),
                None => {
                    let op_name = instruction.metadata.as_ref().map_or("", |metadata| &metadata.op_name);
                    hlo::node_name(&self.module.name, op_name, &instruction.name)
                }
            };
            let name = self.unique(&name);
            names.insert(instruction.id, name);
        }
        for instruction in &computation.instructions {
            let Some(name) = names.get(&instruction.id) else { continue };
            let input = inputs(instruction, &names, outer);
            if depth < MAX_DEPTH && !COMBINERS.contains(&instruction.opcode.as_str()) {
                self.write_called(instruction, name, &input, depth);
            }
            let attr = attributes(instruction, self.module);
            self.nodes.push(NodeDef {
                name: name.clone(),
                op: instruction.opcode.clone(),
                input,
                attr,
                ..NodeDef::default()
            });
        }
    }

    fn write_called(&mut self, caller: &HloInstructionProto, name: &str, input: &[String], depth: usize) {
        for id in &caller.called_computation_ids {
            let Some(called) = self.computations.get(id).copied() else { continue };
            if !self.written.insert(*id) {
                continue;
            }
            // A fusion has one computation, a loop has a body and a condition.
            let is_only = caller.called_computation_ids.len() == 1;
            let scope = if is_only { name.to_owned() } else { format!("{name}/{}", called.name) };
            self.write(called, Some(&scope), input, depth + 1);
        }
    }

    /// Reserves a name, with a suffix where another node has it.
    fn unique(&mut self, name: &str) -> String {
        let mut unique = name.to_owned();
        let mut n = 0;
        while !self.names.insert(unique.clone()) {
            n += 1;
            unique = format!("{name}_{n}");
        }
        unique
    }
}

/// The inputs of an instruction: its operands, for a parameter of an inner computation the caller's; then the
/// instructions that it only has to follow.
fn inputs(instruction: &HloInstructionProto, names: &HashMap<i64, String>, outer: &[String]) -> Vec<String> {
    let operand = |id: &i64| {
        let name = names.get(id)?;
        let is_element = instruction.opcode == "get-tuple-element" && instruction.tuple_index > 0;
        Some(if is_element { format!("{name}:{}", instruction.tuple_index) } else { name.clone() })
    };
    let mut input: Vec<String> = instruction.operand_ids.iter().filter_map(operand).collect();
    if instruction.opcode == "parameter" {
        let number = usize::try_from(instruction.parameter_number).ok();
        let of_caller = number.and_then(|number| outer.get(number)).filter(|input| !input.starts_with('^'));
        input.extend(of_caller.cloned());
    }
    let before = instruction.control_predecessor_ids.iter().filter_map(|id| names.get(id));
    input.extend(before.map(|name| format!("^{name}")));
    input
}

fn attributes(instruction: &HloInstructionProto, module: &HloModuleProto) -> BTreeMap<String, AttrValue> {
    let mut attr = BTreeMap::new();
    let mut arrays = Vec::new();
    collect_arrays(instruction.shape.as_ref(), MAX_DEPTH, &mut arrays);
    if let Some(first) = arrays.first() {
        attr.insert("dtype".to_owned(), AttrValue { value: Some(attr_value::Value::Type(dtype(first).into())) });
        let shape = arrays.iter().map(|array| known_shape(array)).collect();
        let list = attr_value::ListValue { shape, ..attr_value::ListValue::default() };
        attr.insert("_output_shapes".to_owned(), AttrValue { value: Some(attr_value::Value::List(list)) });
    }
    let mut text = |key: &str, value: &str| {
        if !value.is_empty() {
            let value = Some(attr_value::Value::S(value.as_bytes().to_vec()));
            attr.insert(key.to_owned(), AttrValue { value });
        }
    };
    text("category", &hlo::category(instruction));
    text("custom_call_target", &instruction.custom_call_target);
    if let Some(metadata) = &instruction.metadata {
        text("op_name", &metadata.op_name);
        if let Some((file, line)) = hlo::source(metadata, module.stack_frame_index.as_ref()) {
            text("source", &format!("{file}:{line}"));
        }
    }
    attr
}

/// The arrays of a shape: itself, or those of a tuple in order.
fn collect_arrays<'a>(shape: Option<&'a ShapeProto>, depth: usize, arrays: &mut Vec<&'a ShapeProto>) {
    match shape {
        Some(tuple) if !tuple.tuple_shapes.is_empty() && depth > 0 => {
            tuple.tuple_shapes.iter().for_each(|shape| collect_arrays(Some(shape), depth - 1, arrays));
        }
        Some(array) if dtype(array) != DataType::DtInvalid => arrays.push(array),
        _ => {}
    }
}

fn known_shape(array: &ShapeProto) -> TensorShapeProto {
    let dim = array.dimensions.iter().map(|size| Dim { size: *size, ..Dim::default() }).collect();
    TensorShapeProto { dim, ..TensorShapeProto::default() }
}

/// TensorFlow's type for the element type of a shape; invalid for tuples, tokens and types that TensorFlow lacks.
fn dtype(shape: &ShapeProto) -> DataType {
    use DataType as T;
    // By the numbers of XLA's PrimitiveType.
    match shape.element_type {
        1 => T::DtBool,
        2 => T::DtInt8,
        3 => T::DtInt16,
        4 => T::DtInt32,
        5 => T::DtInt64,
        6 => T::DtUint8,
        7 => T::DtUint16,
        8 => T::DtUint32,
        9 => T::DtUint64,
        10 => T::DtHalf,
        11 => T::DtFloat,
        12 => T::DtDouble,
        15 => T::DtComplex64,
        16 => T::DtBfloat16,
        18 => T::DtComplex128,
        19 => T::DtFloat8E5m2,
        20 => T::DtFloat8E4m3fn,
        21 => T::DtInt4,
        22 => T::DtUint4,
        23 => T::DtFloat8E4m3b11fnuz,
        24 => T::DtFloat8E5m2fnuz,
        25 => T::DtFloat8E4m3fnuz,
        _ => T::DtInvalid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hlo::OpMetadata;

    fn instruction(id: i64, text: &str) -> HloInstructionProto {
        let (name, opcode) = text.split_once(" = ").unwrap();
        let metadata = Some(OpMetadata { op_name: "jit(f)/layer/op".to_owned(), ..OpMetadata::default() });
        HloInstructionProto { id, name: name.to_owned(), opcode: opcode.to_owned(), metadata, ..Default::default() }
    }

    fn computation(id: i64, instructions: Vec<HloInstructionProto>) -> HloComputationProto {
        HloComputationProto { id, name: format!("c{id}"), instructions, ..HloComputationProto::default() }
    }

    #[test]
    fn computations_are_inside_their_first_caller() {
        let f32s = ShapeProto { element_type: 11, dimensions: vec![2, 3], ..ShapeProto::default() };
        let tuple = ShapeProto { element_type: 13, tuple_shapes: vec![f32s.clone(), f32s], ..ShapeProto::default() };
        let body = vec![instruction(1, "p0 = parameter"), instruction(2, "t = tanh")];
        let body: Vec<_> = body
            .into_iter()
            .zip([vec![], vec![1]])
            .map(|(i, operand_ids)| HloInstructionProto { operand_ids, ..i })
            .collect();
        let of = |i: HloInstructionProto, operand_ids: &[i64], called: &[i64]| HloInstructionProto {
            operand_ids: operand_ids.to_vec(),
            called_computation_ids: called.to_vec(),
            ..i
        };
        let entry = vec![
            instruction(1, "x = parameter"),
            of(instruction(2, "fusion.1 = fusion"), &[1], &[7]),
            of(instruction(3, "fusion.2 = fusion"), &[2], &[7]),
            HloInstructionProto { shape: Some(tuple), ..of(instruction(4, "loop = while"), &[3], &[8, 9]) },
            HloInstructionProto {
                tuple_index: 1,
                control_predecessor_ids: vec![2],
                ..of(instruction(5, "gte = get-tuple-element"), &[4], &[])
            },
            of(instruction(6, "sum = reduce"), &[5, 99], &[10]),
        ];
        let module = HloModuleProto {
            name: "jit_f".to_owned(),
            entry_computation_id: 11,
            computations: vec![
                computation(7, body),
                computation(8, vec![instruction(1, "a = add")]),
                computation(9, vec![instruction(1, "less = compare")]),
                computation(10, vec![instruction(1, "add = add")]),
                computation(11, entry),
            ],
            ..HloModuleProto::default()
        };
        let graph = decode(&HloProto { hlo_module: Some(module) }.encode_to_vec()).unwrap();
        let lines: Vec<String> =
            graph.node.iter().map(|n| format!("{} = {}({})", n.name, n.op, n.input.join(", "))).collect();
        let expected = [
            "jit(f)/layer/op/x = parameter()",
            "jit(f)/layer/op/fusion.1/p0 = parameter(jit(f)/layer/op/x)",
            "jit(f)/layer/op/fusion.1/t = tanh(jit(f)/layer/op/fusion.1/p0)",
            "jit(f)/layer/op/fusion.1 = fusion(jit(f)/layer/op/x)",
            "jit(f)/layer/op/fusion.2 = fusion(jit(f)/layer/op/fusion.1)",
            "jit(f)/layer/op/loop/c8/a = add()",
            "jit(f)/layer/op/loop/c9/less = compare()",
            "jit(f)/layer/op/loop = while(jit(f)/layer/op/fusion.2)",
            "jit(f)/layer/op/gte = get-tuple-element(jit(f)/layer/op/loop:1, ^jit(f)/layer/op/fusion.1)",
            "jit(f)/layer/op/sum = reduce(jit(f)/layer/op/gte)",
        ];
        assert_eq!(lines, expected);
        let Some(attr_value::Value::List(shapes)) = &graph.node[7].attr["_output_shapes"].value else { panic!() };
        assert_eq!(shapes.shape.len(), 2);
    }

    #[test]
    fn a_graph_is_no_program() {
        let node = NodeDef { name: "x".to_owned(), op: "Const".to_owned(), ..NodeDef::default() };
        let graph = GraphDef { node: vec![node.clone(), node], ..GraphDef::default() };
        assert_eq!(decode(&graph.encode_to_vec()), None);
        assert_eq!(decode(&[]), None);
    }
}
