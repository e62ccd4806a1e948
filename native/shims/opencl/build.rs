//! The name inside the library, and the client's library beside it.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libsluice_opencl.so");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-rpath,$ORIGIN");
    println!("cargo::rustc-cdylib-link-arg=-Wl,--enable-new-dtags");
    // OUT_DIR is <target>/<profile>/build/<package>/out; the client's library is made in <target>/<profile>/deps. The text
    // of OUT_DIR stays whole: cargo replaces it where a build is used from another folder.
    let out = std::env::var("OUT_DIR").unwrap_or_default();
    println!("cargo::rustc-link-search=native={out}/../../../deps");
    println!("cargo::rustc-link-search=native={out}/../../..");
    println!("cargo::rustc-cdylib-link-arg=-Wl,--no-as-needed");
    println!("cargo::rustc-cdylib-link-arg=-lsluice_client");
    println!("cargo::rerun-if-changed=build.rs");
}
