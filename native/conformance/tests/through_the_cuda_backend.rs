//! The cuda backend without a GPU: its driver is our own client library, behind which stands a gpud on the software GPU.
//! What a program computes must not differ from what it computes there directly.

use serde_json::Value;
use sluice_conformance::gpud::native_dir;
use sluice_conformance::programs::programs;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output};

/// Variables by which a client finds the owner of its lease.
const FOUND_BY: [&str; 3] = ["SLUICE_OWNER_SOCKET", "SLUICE_RUNTIME_DIR", "SLUICE_GPU_TYPE"];

/// Runs a command behind two gpuds.
fn chain(options: &[&str], command: &[impl AsRef<OsStr>]) -> Output {
    chain_with(&[], options, command)
}

/// The same, with options for the driver's side too.
fn chain_with(driver: &[&str], options: &[&str], command: &[impl AsRef<OsStr>]) -> Output {
    let loopback = sluice_testing::program("sluice-loopback");
    Command::new(&loopback)
        .env("SLUICE_NATIVE_DIR", native_dir())
        .args(["--as-driver", "--memory", "3221225472"])
        .args(driver)
        .arg("--")
        .arg(&loopback)
        .args(["--backend", "cuda", "--memory", "268435456", "--gpud=--driver=libcuda.so.1"])
        .args(FOUND_BY.map(|name| format!("--gpud=--worker-env={name}")))
        .args(options)
        .arg("--")
        .args(command)
        .output()
        .expect("runs")
}

/// Compiles one of `standins/` under a library's name, in a folder of its own, which is removed with the value.
struct StandIn(PathBuf);

impl StandIn {
    fn new(name: &str, soname: &str, flags: &[&str]) -> Self {
        let folder = std::env::temp_dir().join(format!("sluice-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let source = sluice_testing::package_folder().join("standins").join(name).with_extension("c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-pthread"]);
        compiler.arg(format!("-Wl,-soname,{soname}")).arg("-o").arg(folder.join(soname));
        assert!(compiler.arg(source).arg("-ldl").args(flags).status().expect("cc").success());
        Self(folder)
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs a program of `python/` in a chain with these options; the program ends by saying that all is well.
fn run_python(name: &str, driver: &[&str], options: &[&str]) {
    let program = sluice_testing::package_folder().join("python").join(name).with_extension("py");
    let options = [&["--no-attach"], options].concat();
    let output = chain_with(driver, &options, &["python3", &program.display().to_string()]);
    assert!(output.status.success() && output.stdout.ends_with(b"ok\n"), "{}", text(&output));
}

/// Runs a program of `python/` on a GPU server that has our stand-in for one of NVIDIA's libraries.
fn on_a_stand_in(name: &str, soname: &str) {
    let stand_in = StandIn::new(name, soname, &[]);
    run_python(name, &["--libraries", &stand_in.0.display().to_string()], &[]);
}

/// The command line of these conformance programs, on whatever driver the loader finds.
fn conformance<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let program = sluice_testing::program("sluice-programs").display().to_string();
    [program, "libcuda.so.1".to_owned()].into_iter().chain(names.into_iter().map(str::to_owned)).collect()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn every_program_gets_cudas_answers() {
    let output = chain(&[], &conformance(programs().map(|(name, _)| *name)));
    assert!(output.status.success(), "{}", text(&output));
}

/// The driver locks the program's memory, and copies straight from and to it.
#[test]
fn locked_memory_of_the_same_host_is_copied_by_the_driver() {
    let copies = ["copies_to_locked_memory_go_on", "large_copies_of_locked_memory_go_on", "host_memory"];
    let output = chain(&["--near"], &conformance(copies));
    assert!(output.status.success(), "{}", text(&output));
}

/// Also those whose work waits on the device for work that the lease has no turn for, or that is held back.
#[test]
fn every_program_gets_cudas_answers_below_a_ceiling() {
    let output = chain(&["--ceiling", "600"], &conformance(programs().map(|(name, _)| *name)));
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn what_a_kernel_prints_comes_before_what_the_program_prints_next() {
    let output = chain(&[], &conformance(["print"]));
    assert!(text(&output).contains("thread 0\nthread 1\nthread 2\nafter\n"), "{}", text(&output));
}

#[test]
fn the_hosts_own_libraries_are_called() {
    let program = sluice_testing::package_folder().join("python/libraries.py");
    let output = chain(&[], &["python3", &program.display().to_string()]);
    assert!(output.status.success() && output.stdout.ends_with(b"ok\n"), "{}", text(&output));
}

#[test]
fn the_hosts_own_libraries_are_captured() {
    let program = sluice_testing::package_folder().join("python/library_graphs.py");
    let output = chain(&[], &["python3", &program.display().to_string()]);
    assert!(output.status.success() && output.stdout.ends_with(b"ok\n"), "{}", text(&output));
}

#[test]
fn graphs_of_the_hosts_cudnn_are_built_and_executed() {
    on_a_stand_in("cudnn", "libcudnn.so.9");
}

#[test]
fn steps_of_the_hosts_cusparse_find_what_the_ones_before_left() {
    on_a_stand_in("cusparse", "libcusparse.so.12");
}

#[test]
fn structures_of_the_program_stand_for_those_of_the_hosts_cusparselt() {
    on_a_stand_in("cusparselt", "libcusparseLt.so.0");
}

#[test]
fn communicators_of_the_hosts_nccl_span_processes() {
    on_a_stand_in("nccl", "libnccl.so.2");
}

#[test]
fn tensor_maps_are_the_drivers() {
    let libraries = format!("-L{}", native_dir().display());
    let stand_in = StandIn::new("driver", "libdriver.so", &[&libraries, "-Wl,--no-as-needed", "-lcuda"]);
    let driver = format!("--gpud=--driver={}", stand_in.0.join("libdriver.so").display());
    run_python("tensor_maps", &[], &[&driver]);
}

/// As PyTorch's expandable segments are.
#[test]
fn memory_that_the_program_mapped_itself_is_parked_too() {
    let program = sluice_testing::package_folder().join("python/parking.py");
    let output = chain(&["--joined", "--no-attach"], &["python3", &program.display().to_string(), "40", "24"]);
    let answer: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output)));
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(answer["parked_bytes"], 64 << 20);
    assert_eq!(answer["free_bytes"], answer["total_bytes"]);
}

#[test]
fn memory_is_parked_and_lies_at_its_addresses_again() {
    let program = sluice_testing::package_folder().join("python/parking.py");
    let output = chain(&["--joined", "--no-attach"], &["python3", &program.display().to_string(), "200"]);
    let answer: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", text(&output)));
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(answer["parked_bytes"], 200 << 20);
    assert_eq!(answer["total_bytes"], 256 << 20);
}
