//! CUDA C++ programs (`cuda/`), compiled by nvcc with `--cudart=shared`, through our runtime library, a real gpud and
//! the software GPU. Each checks itself and ends with `ok`.
//!
//! nvcc comes from PyPI (`cuda/toolkit.py`); what it made is kept beside it in the user's cache, under a hash of
//! the sources.

use ring::digest::{SHA256, digest};
use sluice_conformance::gpud::{link_libraries, native_dir};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Programs of more than one file, and those with options of their own.
const SPECIAL: &[(&str, &[&str])] =
    &[("several_files", &["several_files_other.cu"]), ("per_thread_stream", &["--default-stream", "per-thread"])];

/// Programs of the folders beside, one or two of each, that are quickly built. `npm run conformance -- cuda` runs all
/// of them, for two architectures.
const SAMPLE: &[&str] = &[
    "cub/block_reduce.cu",
    "curand/philox.cu",
    "device/lanes.cu",
    "groups/grid_sync.cu",
    "groups/tiles.cu",
    "kernels/attention.cu",
    "kernels/fft.cu",
];

/// Where things are.
struct Places {
    sources: PathBuf,
    /// What [`toolkit.py`] installed.
    toolkit: PathBuf,
    /// Our libraries under the names that a linker looks for.
    libraries: PathBuf,
    /// Compiled programs.
    built: PathBuf,
}

fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = || format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}", text());
    output
}

fn places() -> Places {
    let sources = sluice_testing::package_folder().join("cuda");
    let printed = succeed(Command::new("python3").arg(sources.join("toolkit.py"))).stdout;
    let toolkit = PathBuf::from(String::from_utf8(printed).expect("a path").trim());
    let built = toolkit.parent().expect("the cache folder").join("cuda-test-programs");
    let libraries = sluice_testing::program("cuda-libraries");
    for folder in [&built, &libraries] {
        std::fs::create_dir_all(folder).expect("a folder");
    }
    link_libraries(&libraries).expect("libraries are built");
    let plain = libraries.join("libcudart.so");
    let _ = std::fs::remove_file(&plain);
    std::os::unix::fs::symlink(native_dir().join("libcudart13.so"), plain).expect("a link");
    Places { sources, toolkit, libraries, built }
}

/// Every program's name: a .cu file with a main function, and the sample of the folders beside.
fn programs(sources: &Path) -> Vec<String> {
    let files = std::fs::read_dir(sources).expect("the folder of programs").flatten();
    let mut names: Vec<String> = files
        .filter(|file| std::fs::read_to_string(file.path()).is_ok_and(|text| text.contains("int main()")))
        .filter_map(|file| Some(file.path().file_name()?.to_str()?.to_owned()))
        .collect();
    names.extend(SAMPLE.iter().map(|name| (*name).to_owned()));
    names.sort();
    names
}

/// Compiles a program unless its sources are those of the last time.
fn compile(places: &Places, file: &str) -> PathBuf {
    let name = Path::new(file).file_stem().and_then(|name| name.to_str()).unwrap_or(file);
    let extra = SPECIAL.iter().find(|entry| entry.0 == name).map_or(&[][..], |entry| entry.1);
    let mut content = places.toolkit.display().to_string().into_bytes();
    for part in [file, "check.h", "device_array.h", "cuda12_kernel.cu"].iter().chain(extra) {
        content.extend(std::fs::read(places.sources.join(part)).unwrap_or_else(|_| part.as_bytes().to_vec()));
    }
    let hash: String = digest(&SHA256, &content).as_ref()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let program = places.built.join(format!("{name}-{hash}"));
    if program.exists() {
        return program;
    }
    // Compiled aside and renamed: a test that is ended in between leaves no half program.
    let aside = program.with_extension("part");
    let nvcc = || {
        let mut nvcc = Command::new(places.toolkit.join("cu13/bin/nvcc"));
        nvcc.current_dir(&places.sources).args(["-std=c++17", "-gencode", "arch=compute_75,code=compute_75"]);
        nvcc.arg("-I").arg(places.toolkit.join("cu13/include/cccl"));
        nvcc
    };
    let folder = format!("-L{}", places.libraries.display());
    if file.ends_with(".cpp") {
        let image = program.with_extension("fatbin");
        succeed(nvcc().args(["-fatbin", "-o"]).arg(&image).arg("cuda12_kernel.cu"));
        let mut compiler = Command::new("c++");
        compiler.current_dir(&places.sources).arg("-I").arg(places.toolkit.join("cuda_runtime/include"));
        compiler
            .arg("-I")
            .arg(places.toolkit.join("cu13/include"))
            .arg(format!("-DFAT_BINARY=\"{}\"", image.display()));
        succeed(compiler.arg("-o").arg(&aside).args([file, &folder, "-l:libcudart.so.12"]));
    } else {
        succeed(nvcc().args(["--cudart=shared", &folder, "-o"]).arg(&aside).arg(file).args(extra));
    }
    std::fs::rename(&aside, &program).expect("the program is renamed");
    program
}

/// What went wrong, if something did.
fn run(program: &Path) -> Result<(), String> {
    let mut command = Command::new(sluice_testing::program("sluice-loopback"));
    command.env("SLUICE_NATIVE_DIR", native_dir()).args(["--memory", "268435456", "--"]).arg(program);
    let output = command.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    if output.status.success() && output.stdout.ends_with(b"ok\n") { Ok(()) } else { Err(text) }
}

#[test]
fn programs_of_nvcc_run_through_our_runtime() {
    let places = places();
    let names = programs(&places.sources);
    assert!(names.len() >= 20, "programs are missing: {names:?}");
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let workers = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(text) = run(&compile(&places, name)) {
                        failed.lock().expect("no worker failed").push(format!("{name}: {text}"));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no worker failed");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// What nvcc compiles to be linked later (`-dc`), by itself and in a library of which a part is needed.
#[test]
fn object_files_and_libraries_are_linked_by_the_driver() {
    let places = places();
    let sources = places.sources.join("linking");
    let folder = places.built.join(format!("linking-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let object = |source: &str, code: &str| {
        let object = folder.join(source).with_extension(format!("{code}.o"));
        let mut nvcc = Command::new(places.toolkit.join("cu13/bin/nvcc"));
        nvcc.args(["-dc", "-gencode", &format!("arch=compute_75,code={code}_75"), "-o"]).arg(&object);
        succeed(nvcc.arg(sources.join(source)));
        object
    };
    let (kernel, machine_code) = (object("kernel.cu", "compute"), object("kernel.cu", "sm"));
    let library = folder.join("libhelper.a");
    let members = [object("other.cu", "compute"), object("helper.cu", "compute")];
    succeed(Command::new("ar").arg("rcs").arg(&library).args(members));
    let program = folder.join("linking");
    let mut compiler = Command::new("c++");
    compiler.arg("-I").arg(places.toolkit.join("cu13/include")).arg("-o").arg(&program).arg(sources.join("main.cpp"));
    succeed(compiler.arg(format!("-L{}", places.libraries.display())).arg("-l:libcuda.so.1"));
    let mut command = Command::new(sluice_testing::program("sluice-loopback"));
    command.env("SLUICE_NATIVE_DIR", native_dir()).arg("--").arg(program).args([kernel, library, machine_code]);
    let output = command.output().expect("runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let _ = std::fs::remove_dir_all(&folder);
    assert!(output.status.success() && text.contains("compile it with PTX") && text.contains("ok\n"), "{text}");
}

#[test]
fn memory_that_host_and_kernels_would_share_is_refused_with_one_sentence_each() {
    let mut command = Command::new(sluice_testing::program("sluice-loopback"));
    command.env("SLUICE_NATIVE_DIR", native_dir()).arg("--").arg(compile(&places(), "refused.cu"));
    let output = command.output().expect("runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("`counter` is __managed__") && text.contains("__device__ instead"), "{text}");
    // A program that does not look at the error goes on with a pointer that it did not get.
    for symbol in ["cudaMallocManaged", "cudaHostGetDevicePointer"] {
        let sentence = format!("sluice: {symbol} is not supported: kernels on a remote GPU cannot reach host memory; ");
        assert_eq!(text.matches(&sentence).count(), 1, "{symbol}: {text}");
    }
}

#[test]
fn without_a_lease_the_error_says_what_to_do() {
    let places = places();
    let mut command = Command::new(sluice_testing::program("sluice-loopback"));
    command.env("SLUICE_NATIVE_DIR", native_dir()).args(["--no-attach", "--"]);
    let output = command.arg(compile(&places, "saxpy.cu")).output().expect("runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success());
    assert!(text.contains("cudaErrorDevicesUnavailable") && text.contains("%gpu attach"), "{text}");
}
