//! The original's name inside the library, and the client's library beside it.

use std::path::PathBuf;

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libnvidia-ml.so.1");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN");
    println!("cargo::rustc-cdylib-link-arg=-Wl,--enable-new-dtags");
    // OUT_DIR is <target>/<profile>/build/<package>/out; the client's library is made in <target>/<profile>/deps.
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    if let Some(profile) = out.ancestors().nth(3) {
        println!("cargo::rustc-link-search=native={}", profile.join("deps").display());
        println!("cargo::rustc-link-search=native={}", profile.display());
    }
    println!("cargo::rustc-cdylib-link-arg=-Wl,--no-as-needed");
    println!("cargo::rustc-cdylib-link-arg=-lsluice_client");
    println!("cargo::rerun-if-changed=build.rs");
}
