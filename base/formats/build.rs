//! Compiles the .proto files to Rust types and to the descriptor set that the text format needs; no `protoc`.

use std::{env, error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files = [
        "tensorflow/graph.proto",
        "tensorflow/event.proto",
        "tensorflow/profile.proto",
        "tensorboard/plugins.proto",
        "onnx/onnx.proto",
        "perfetto/trace.proto",
        "xla/hlo.proto",
    ];
    let compiled = protox::Compiler::new(["proto"])?
        .include_imports(true)
        .include_source_info(true)
        .open_files(files)?
        .file_descriptor_set();
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), encode_descriptors(&compiled))?;
    // Ordered maps: the same graph gives the same bytes.
    prost_build::Config::new().btree_map(["."]).compile_fds(compiled)?;
    Ok(())
}

fn encode_descriptors(set: &impl prost::Message) -> Vec<u8> {
    set.encode_to_vec()
}
