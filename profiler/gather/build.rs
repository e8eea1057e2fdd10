//! Compiles the protocol without protoc.
#![allow(clippy::disallowed_methods)] // Cargo speaks to build scripts through the environment.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let files = protox::compile(["gather.proto"], ["proto"])?;
    tonic_prost_build::configure().bytes(".").compile_fds(files)?;
    Ok(())
}
