//! The shims of the libraries that run beside the driver. They hold nothing but names, so this crate's build script
//! assembles them from the declaration list: one shared library a SONAME, in the folder [`FOLDER`] beside the client.

/// Where they lie, in the folder of the build's products.
pub const FOLDER: &str = "libraries";
