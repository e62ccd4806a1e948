//! Which release a library says it is: that of the GPU server's library while a GPU is attached, because programs choose
//! by it what they ask for; before that the one that the shims stand in for. A question for a version never makes a
//! program wait for a GPU.

use super::{Loaded, remote};
use crate::device::Device;
use crate::driver;
use sluice_api::libraries::number_of;
use sluice_protocol::Wire;
use sluice_protocol::library::Argument;

/// As one number, in the library's own way of writing it.
pub fn version(loaded: Loaded) -> u32 {
    let [major, minor, patch] = parts(loaded);
    major * unit(loaded) + minor * 100 + patch
}

/// Major, minor and patch.
pub fn parts(loaded: Loaded) -> [u32; 3] {
    let split = |version: u32| [version / unit(loaded), version % unit(loaded) / 100, version % 100];
    let stated = split(loaded.shim().version);
    if loaded.library.source.name == "nccl" {
        return asked(loaded, "ncclGetVersion", None).map_or(stated, split);
    }
    let property = loaded.library.functions.iter().find(|function| function.symbol.ends_with("GetProperty"));
    let Some(property) = property else { return stated };
    let part = |part| asked(loaded, &property.symbol, Some(part));
    match (part(0), part(1), part(2)) {
        (Some(major), Some(minor), Some(patch)) if [major, minor, patch] != [0; 3] => [major, minor, patch],
        _ => stated,
    }
}

/// What the major version is multiplied with.
fn unit(loaded: Loaded) -> u32 {
    if matches!(loaded.library.source.name, "cublas" | "cublaslt" | "cudnn" | "nccl") { 10_000 } else { 1000 }
}

/// What the server's library answers, in its last argument; none where there is no server or no such library.
fn asked(loaded: Loaded, symbol: &str, part: Option<u64>) -> Option<u32> {
    let session = driver::here().ok().and_then(Device::session_now)?;
    let number = number_of(symbol);
    session.libraries.check(&session, loaded, symbol, number).ok()?;
    let mut question = Vec::new();
    part.into_iter().for_each(|part| Argument::Word(part).put(&mut question));
    Argument::Out(4).put(&mut question);
    let answer = remote::ask(&session, loaded, number, 0, (&question, &question)).ok()?;
    let value = answer.outputs.first_chunk().filter(|_| answer.status == 0)?;
    Some(u32::from_le_bytes(*value))
}
