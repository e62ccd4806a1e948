//! The original's name and version node, and the client's library beside it.

fn main() {
    let link = |argument: &str| println!("cargo::rustc-cdylib-link-arg={argument}");
    link("-Wl,-soname,libcudart.so.13");
    // Every symbol gets the name of the library as its version, which is what the original's linker did.
    link("-fuse-ld=bfd");
    link("-Wl,--default-symver");
    link("-Wl,-rpath,$ORIGIN");
    link("-Wl,--enable-new-dtags");
    // OUT_DIR is <target>/<profile>/build/<package>/out; the client's library is made in <target>/<profile>/deps. The text
    // of OUT_DIR stays whole: cargo replaces it where a build is used from another folder.
    let out = std::env::var("OUT_DIR").unwrap_or_default();
    println!("cargo::rustc-link-search=native={out}/../../../deps");
    println!("cargo::rustc-link-search=native={out}/../../..");
    link("-Wl,--no-as-needed");
    link("-lsluice_client");
    println!("cargo::rerun-if-changed=build.rs");
}
