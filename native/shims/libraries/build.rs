//! Makes one shared library for each SONAME of the declaration list: every function loads its numbers and jumps to the
//! client's `sluice_library_entry`, which finds the arguments where the caller put them. Each symbol carries the version
//! that the original's carries. In Rust these would be thousands of functions for the compiler; an assembler needs
//! milliseconds.

use sluice_api::libraries::{Library, Shim, libraries};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

/// To the year 2000: archives take no earlier time.
const YEARS: Duration = Duration::from_secs(946_684_800);
/// Keeps what is linked from asking for an executable stack.
const NO_EXECUTABLE_STACK: &str = ".section .note.GNU-stack,\"\",%progbits\n";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Err(problem) = make() {
        panic!("{problem}");
    }
}

fn make() -> Result<(), String> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    // OUT_DIR is <target>/<profile>/build/<package>/out. The products stand beside those of cargo, because there is
    // where everything looks for them.
    let folder = out.ancestors().nth(3).ok_or("OUT_DIR is too short")?.join("libraries");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    println!("cargo::rerun-if-changed={}", watched(&folder).display());
    // The client is not built yet; for the linker its name and one symbol are enough.
    let entry = ".text\n.globl sluice_library_entry\n.type sluice_library_entry,%function\nsluice_library_entry:\n";
    link(&out, "client", entry, &["-Wl,-soname,libsluice_client.so"], &out.join("libsluice_client.so"))?;
    for library in libraries() {
        for shim in library.source.shims {
            shared_library(&out, &folder, library.get(), shim)?;
        }
    }
    age(&folder)
}

fn shared_library(out: &Path, folder: &Path, library: &Library, shim: &Shim) -> Result<(), String> {
    let script = out.join("versions");
    write(&script, &format!("{} {{ global: *; }};\n", shim.node))?;
    let (soname, script) =
        (format!("-Wl,-soname,{}", shim.soname), format!("-Wl,--version-script={}", script.display()));
    let search = format!("-L{}", out.display());
    let arguments = [
        &soname,
        &script,
        "-Wl,-rpath,$ORIGIN:$ORIGIN/..",
        "-Wl,--enable-new-dtags",
        "-Wl,--hash-style=gnu",
        "-Wl,--no-as-needed",
        &search,
        "-lsluice_client",
    ];
    link(out, shim.soname, &assembly(library, shim), &arguments, &folder.join(shim.soname))
}

/// One label a function. The numbers travel in registers that no argument is passed in.
fn assembly(library: &Library, shim: &Shim) -> String {
    let id = u32::from(library.source.number) << 16 | shim.abi();
    let mut text = String::from(".text\n");
    for (index, function) in library.functions.iter().enumerate() {
        let name = &function.symbol;
        let _ = writeln!(text, ".globl {name}\n.type {name},%function\n{name}:");
        text.push_str(&match std::env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
            Ok("aarch64") => format!(
                "movz w9, #{}\nmovk w9, #{}, lsl #16\nmovz w10, #{index}\nadrp x11, :got:sluice_library_entry\n\
                 ldr x11, [x11, :got_lo12:sluice_library_entry]\nbr x11\n",
                id & 0xffff,
                id >> 16
            ),
            _ => format!("movl ${id}, %eax\nmovl ${index}, %r11d\njmp *sluice_library_entry@GOTPCREL(%rip)\n"),
        });
        let _ = writeln!(text, ".size {name}, .-{name}");
    }
    text
}

fn link(out: &Path, name: &str, assembly: &str, arguments: &[&str], product: &Path) -> Result<(), String> {
    let source = out.join(format!("{name}.s"));
    write(&source, &format!("{assembly}{NO_EXECUTABLE_STACK}"))?;
    // Renamed into place: a program that has the old one loaded keeps it.
    let part = product.with_extension("part");
    let linker = std::env::var("RUSTC_LINKER").unwrap_or_else(|_| "cc".into());
    let mut command = Command::new(&linker);
    command.args(["-shared", "-nostdlib", "-o"]).arg(&part).arg(&source).args(arguments);
    let status = command.status().map_err(|error| format!("{linker}: {error}"))?;
    if !status.success() {
        return Err(format!("{linker} could not link {name}"));
    }
    age(&part)?;
    std::fs::rename(&part, product).map_err(|error| format!("{}: {error}", product.display()))
}

/// Makes a file or folder older than this run: cargo compares the times of what it watches with the start of the build
/// script, and would run the script again at every build.
fn age(path: &Path) -> Result<(), String> {
    let aged = std::fs::File::open(path).and_then(|file| file.set_modified(UNIX_EPOCH + YEARS));
    aged.map_err(|error| format!("{}: {error}", path.display()))
}

/// The path by which cargo watches `folder`: relative to this package where it can be, so that a target folder that is
/// moved with its checkout stays valid.
fn watched(folder: &Path) -> PathBuf {
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    match package.ancestors().nth(2).and_then(|native| folder.strip_prefix(native).ok()) {
        Some(inside) => Path::new("../..").join(inside),
        None => folder.to_path_buf(),
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
