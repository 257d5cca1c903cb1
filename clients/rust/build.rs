//! Generates code from the contract in the folder `$PARLEY_CONTRACT`, without a `protoc` program.

use std::{env, error::Error};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed=PARLEY_CONTRACT");
    let contract = env::var("PARLEY_CONTRACT").map_err(|_| "PARLEY_CONTRACT is the folder of the unpacked contract")?;
    println!("cargo::rerun-if-changed={contract}");
    let protos = ["parley/v1/completion.proto", "parley/v1/embedding.proto", "parley/v1/error.proto"];
    let files = protox::compile(protos, [contract])?;
    tonic_prost_build::configure().build_server(false).compile_fds(files)?;
    Ok(())
}
