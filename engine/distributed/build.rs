//! Compiles the protocols between clients, master and workers without protoc.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=proto");
    let control = protox::compile(["control.proto"], ["proto"])?;
    prost_build::Config::new().compile_fds(control)?;
    let service = protox::compile(["master_service.proto"], ["proto"])?;
    tonic_prost_build::configure().compile_fds(service)?;
    Ok(())
}
