//! Programs of the XLA compiler as graphs, compared with the text that XLA itself prints of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
    path::PathBuf,
};

use formats::{
    FileKind, graph_file,
    profile::{XSpace, x_stat},
    proto::{GraphDef, NodeDef, attr_value::Value},
    sniff,
};
use prost::Message;

fn recorded(name: &str) -> PathBuf {
    // At run time: the target folder may be another clone's, too.
    let crate_folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    PathBuf::from(crate_folder).join("../../tests/data/h200").join(name)
}

/// The name of an instruction in its program.
fn short(name: &str) -> &str {
    let name = name.rsplit('/').next().unwrap_or(name);
    name.split(':').next().unwrap_or(name)
}

/// The nodes that are in no other node: those of the programs' entries.
fn entries(graph: &GraphDef) -> Vec<&NodeDef> {
    let all: BTreeSet<&str> = graph.node.iter().map(|node| node.name.as_str()).collect();
    let is_inner = |name: &str| name.match_indices('/').any(|(end, _)| all.contains(&name[..end]));
    graph.node.iter().filter(|node| !is_inner(&node.name)).collect()
}

/// The entry computation in HLO's text: `%name = f32[2]{0} opcode(%operand, ...), attributes`, by name.
fn printed(text: &str) -> BTreeMap<&str, (&str, Vec<&str>)> {
    let body = text.split("\nENTRY ").nth(1).expect("an entry").lines().skip(1).take_while(|line| *line != "}");
    body.filter_map(|line| {
        let (name, rest) = line.trim().trim_start_matches("ROOT ").split_once(" = ")?;
        // The type ends at the first space outside brackets.
        let mut depth = 0;
        let end = rest.find(|c| {
            depth += i32::from(matches!(c, '(' | '{' | '[')) - i32::from(matches!(c, ')' | '}' | ']'));
            c == ' ' && depth == 0
        })?;
        let (opcode, rest) = rest[end + 1..].split_once('(')?;
        let operands = rest.split_once(')')?.0;
        let operands = operands.split(", ").filter_map(|operand| Some(operand.rsplit_once('%')?.1));
        let is_number = opcode == "parameter" || opcode == "constant";
        let operands = if is_number { Vec::new() } else { operands.collect() };
        Some((name.trim_start_matches('%'), (opcode, operands)))
    })
    .collect()
}

#[test]
fn a_program_in_a_trace_is_the_graph_that_xla_prints() {
    let graph = graph_file::read(&recorded("jax.xplane.pb.gz")).expect("the trace has programs");
    let mut text = String::new();
    let packed = std::fs::File::open(recorded("jax.hlo.txt.gz")).expect("the fixture is there");
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).expect("gzip");
    let printed = printed(&text);
    assert!(printed.len() > 300, "{} instructions", printed.len());
    let entries = entries(&graph);
    for (name, (opcode, operands)) in printed {
        // The trace has other programs, too, whose instructions may have the same name.
        let is_it = |node: &&&NodeDef| {
            let data = node.input.iter().filter(|input| !input.starts_with('^'));
            short(&node.name) == name
                && node.op == opcode
                && data.map(|input| short(input)).eq(operands.iter().copied())
        };
        assert!(entries.iter().any(|node| is_it(&node)), "{name} = {opcode}({operands:?})");
    }
}

#[test]
fn fusions_have_their_computation_inside() {
    let graph = graph_file::read(&recorded("jax.xplane.pb.gz")).expect("the trace has programs");
    let fusion = graph.node.iter().find(|node| node.name.ends_with("/fusion.248")).expect("it ran");
    assert_eq!(fusion.op, "fusion");
    let inner: Vec<&NodeDef> =
        graph.node.iter().filter(|node| node.name.starts_with(&format!("{}/", fusion.name))).collect();
    let parameters: Vec<&&NodeDef> = inner.iter().filter(|node| node.op == "parameter").collect();
    assert!(inner.len() > parameters.len() && parameters.len() == fusion.input.len());
    let of_parameters: BTreeSet<&String> = parameters.iter().flat_map(|node| &node.input).collect();
    assert_eq!(of_parameters, fusion.input.iter().collect(), "parameters have the fusion's operands");
    assert!(matches!(&fusion.attr["category"].value, Some(Value::S(category)) if category == b"custom fusion"));
    let Some(Value::List(shapes)) = &fusion.attr["_output_shapes"].value else { panic!("no shapes") };
    assert!(!shapes.shape.is_empty());
}

#[test]
fn a_program_alone_is_a_graph_file() {
    let mut planes = Vec::new();
    let packed = std::fs::File::open(recorded("jax.xplane.pb.gz")).expect("the fixture is there");
    flate2::read::GzDecoder::new(packed).read_to_end(&mut planes).expect("gzip");
    let space = XSpace::decode(&*planes).expect("an XSpace");
    let in_trace = graph_file::decode(&planes).expect("the trace has programs").node.len();
    let (dir, mut in_files) = (tempfile::tempdir().expect("a folder"), 0);
    let stats =
        space.planes.iter().flat_map(|plane| plane.event_metadata.values()).flat_map(|metadata| &metadata.stats);
    for stat in stats {
        let Some(x_stat::Value::BytesValue(program)) = &stat.value else { continue };
        let path = dir.path().join("module.hlo_proto.pb");
        std::fs::write(&path, program).expect("a file");
        assert_eq!(sniff(&path).expect("it is there"), FileKind::GraphDef);
        in_files += graph_file::read(&path).expect("a program").node.len();
    }
    assert_eq!(in_files, in_trace);
}
