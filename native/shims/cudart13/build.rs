//! The original's name and version node, and the client's library beside it.

use std::path::PathBuf;

fn main() {
    let link = |argument: &str| println!("cargo::rustc-cdylib-link-arg={argument}");
    link("-Wl,-soname,libcudart.so.13");
    // Every symbol gets the name of the library as its version, which is what the original's linker did.
    link("-fuse-ld=bfd");
    link("-Wl,--default-symver");
    link("-Wl,-rpath,$ORIGIN");
    link("-Wl,--enable-new-dtags");
    // OUT_DIR is <target>/<profile>/build/<package>/out; the client's library is made in <target>/<profile>/deps.
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    if let Some(profile) = out.ancestors().nth(3) {
        println!("cargo::rustc-link-search=native={}", profile.join("deps").display());
        println!("cargo::rustc-link-search=native={}", profile.display());
    }
    link("-Wl,--no-as-needed");
    link("-lsluice_client");
    println!("cargo::rerun-if-changed=build.rs");
}
