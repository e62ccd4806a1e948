//! The built `libnvidia-ml.so.1`: every public name is exported; without a lease the recorded device is there, with
//! one its memory and its processes are the lease's.

use serde_json::json;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::ask;
use sluice_conformance::driver::Driver;
use sluice_conformance::gpud::{Gpud, native_dir};
use std::ffi::{CStr, CString, c_char, c_void};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn library() -> *mut c_void {
    let path = native_dir().join("libnvidia_ml.so");
    let path = CString::new(path.display().to_string()).expect("no NUL");
    // SAFETY: loading the library does nothing.
    let found = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!found.is_null(), "{path:?} cannot be loaded");
    found
}

fn address(library: *mut c_void, name: &str) -> *mut c_void {
    let name = CString::new(name).expect("no NUL");
    // SAFETY: the library is loaded and the name ends with NUL.
    unsafe { libc::dlsym(library, name.as_ptr()) }
}

macro_rules! function {
    ($library:expr, $name:literal, $kind:ty) => {{
        let address = address($library, $name);
        assert!(!address.is_null(), $name);
        // SAFETY: the address is that of the function of this name, whose C signature this is.
        unsafe { std::mem::transmute::<*mut c_void, $kind>(address) }
    }};
}

#[test]
fn every_public_name_is_exported() {
    let library = library();
    let missing: Vec<&str> = sluice_api::nvml::names().filter(|name| address(library, name).is_null()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_device_shows_the_lease_and_not_the_card() {
    // SAFETY: no other thread of this program reads these variables now.
    unsafe {
        for name in ["SLUICE_BROKER_URL", "SLUICE_OWNER_SOCKET", "SLUICE_GPU_TYPE"] {
            std::env::remove_var(name);
        }
        // NVML does not know the variable; CUDA does.
        std::env::set_var("CUDA_VISIBLE_DEVICES", "0");
    }
    let library = library();
    let init = function!(library, "nvmlInit_v2", unsafe extern "C" fn() -> u32);
    let shutdown = function!(library, "nvmlShutdown", unsafe extern "C" fn() -> u32);
    let count = function!(library, "nvmlDeviceGetCount_v2", unsafe extern "C" fn(*mut u32) -> u32);
    let handle = function!(library, "nvmlDeviceGetHandleByIndex_v2", unsafe extern "C" fn(u32, *mut usize) -> u32);
    let name = function!(library, "nvmlDeviceGetName", unsafe extern "C" fn(usize, *mut c_char, u32) -> u32);
    let power = function!(library, "nvmlDeviceGetPowerUsage", unsafe extern "C" fn(usize, *mut u32) -> u32);
    let memory = function!(library, "nvmlDeviceGetMemoryInfo", unsafe extern "C" fn(usize, *mut [u64; 3]) -> u32);
    let (mut devices, mut device, mut bytes, mut text) = (0, 0, [0; 3], [0 as c_char; 96]);
    // SAFETY: every output has the room that its function writes to.
    unsafe {
        assert_eq!(count(&mut devices), 1, "uninitialised");
        assert_eq!(init(), 0);
        assert_eq!((count(&mut devices), devices), (0, 1));
        assert_eq!(handle(1, &mut device), 2);
        assert_eq!(handle(0, &mut device), 0);
        assert_eq!(name(device, text.as_mut_ptr(), 4), 7, "too little room");
        assert_eq!(name(device, text.as_mut_ptr(), 96), 0);
        assert_eq!(CStr::from_ptr(text.as_ptr()).to_str(), Ok("Sluice Software GPU"));
        assert_eq!(power(device, &mut devices), 3);
        assert_eq!(memory(device, &mut bytes), 0);
        assert_eq!(bytes, [4 << 30, 4 << 30, 0], "the default amount, half of 8 GiB");
        assert_eq!(shutdown(), 0);
        assert_eq!(shutdown(), 1);
    }

    // This program's own client owns a lease; the libraries, with a client of theirs, use it as a child's would.
    let broker = Broker::start(Arc::new(Gpud::start("soft", &[]).expect("gpud")), 256 << 20).expect("broker");
    // SAFETY: as above.
    unsafe { broker.set_environment() };
    let owner = json!({ "kind": "process", "pid": std::process::id(), "startTime": 1 });
    let served = ask(&json!({ "op": "init", "owner": owner }));
    let id = "00000000-0000-4000-8000-000000000000";
    let granted = ask(&json!({ "op": "attach", "requestId": id, "amount": "0.5", "waitSeconds": 0 }));
    assert_eq!(granted["state"], "granted", "{granted}");
    // SAFETY: as above.
    unsafe { std::env::set_var("SLUICE_OWNER_SOCKET", served["socket"].as_str().expect("a socket")) };
    // SAFETY: every output has the room that its function writes to.
    unsafe {
        assert_eq!(init(), 0);
        assert_eq!(memory(device, &mut bytes), 0);
        assert_eq!(bytes, [256 << 20, 256 << 20, 0]);
    }
    let driver = Driver::load(&native_dir().join("libcuda.so")).expect("libcuda");
    take(&driver, 64 << 20);
    // SAFETY: as above; the answer of a moment ago is forgotten with the library's end.
    unsafe {
        assert_eq!((shutdown(), init()), (0, 0));
        assert_eq!(memory(device, &mut bytes), 0);
        assert_eq!(bytes, [256 << 20, 192 << 20, 64 << 20]);
    }
    assert_eq!(listed(library), [(std::process::id(), 64 << 20)]);

    // Others of the lease are listed as long as they are there, wherever one looks from.
    let mut others = [32 << 20, 16 << 20].map(|bytes| Helper::start("takes", &bytes.to_string()));
    let expected = |others: &[(u32, u64)]| {
        let mut all = [&[(std::process::id(), 64 << 20)], others].concat();
        all.sort_unstable();
        all
    };
    let both = expected(&[(others[0].child.id(), 32 << 20), (others[1].child.id(), 16 << 20)]);
    let look = || {
        // SAFETY: no arguments.
        assert_eq!(unsafe { (shutdown(), init()) }, (0, 0));
        listed(library)
    };
    assert_eq!(look(), both, "by who uses it");
    assert_eq!(Helper::start("looks", "by its owner").said, format!("{both:?}"), "by a child that only looks");
    assert_eq!(Helper::start("looks", "by the broker").said, format!("{both:?}"), "by a tool in a terminal");
    assert_eq!(look(), both, "who only looks is not listed");
    others[0].end();
    let one = expected(&[(others[1].child.id(), 16 << 20)]);
    let until = Instant::now() + Duration::from_secs(10);
    while look() != one {
        assert!(Instant::now() < until, "a process that has ended is listed: {:?}", look());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Allocates memory in a process of its own or in this one.
fn take(driver: &Driver, bytes: usize) {
    let (mut device, mut context, mut array) = (0, 0, 0);
    // SAFETY: live locals.
    unsafe {
        assert_eq!((driver.cuInit)(0), 0);
        assert_eq!((driver.cuDeviceGet)(&mut device, 0), 0);
        assert_eq!((driver.cuDevicePrimaryCtxRetain)(&mut context, device), 0);
        assert_eq!((driver.cuCtxSetCurrent)(context), 0);
        assert_eq!((driver.cuMemAlloc_v2)(&mut array, bytes), 0);
        assert_eq!((driver.cuCtxSynchronize)(), 0);
    }
}

/// The processes of the first device and their bytes.
fn listed(library: *mut c_void) -> Vec<(u32, u64)> {
    let processes = function!(
        library,
        "nvmlDeviceGetComputeRunningProcesses_v3",
        unsafe extern "C" fn(usize, *mut u32, *mut [u64; 3]) -> u32
    );
    let handle = function!(library, "nvmlDeviceGetHandleByIndex_v2", unsafe extern "C" fn(u32, *mut usize) -> u32);
    let (mut device, mut found, mut infos) = (0, 8, [[0; 3]; 8]);
    // SAFETY: every output has the room that its function writes to.
    unsafe {
        assert_eq!(handle(0, &mut device), 0);
        assert_eq!(processes(device, &mut found, infos.as_mut_ptr()), 0);
    }
    // The number of the process fills half of the first word.
    infos[..found as usize].iter().map(|info| (info[0] as u32, info[1])).collect()
}

/// Another process of the workspace: this test again, as a helper.
struct Helper {
    child: Child,
    /// What it has said; then it waits until it is told to end.
    said: String,
    /// Open as long as it may say more.
    _output: BufReader<ChildStdout>,
}

/// In a helper, what it does.
const ROLE: &str = "SLUICE_TEST_ROLE";
/// How much it takes, or how it finds the lease.
const WITH: &str = "SLUICE_TEST_WITH";

impl Helper {
    fn start(role: &str, with: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this test"));
        command.args(["--exact", "a_helper", "--nocapture"]).env(ROLE, role).env(WITH, with);
        if with == "by the broker" {
            command.env_remove("SLUICE_OWNER_SOCKET");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut lines = output.by_ref().lines().map_while(Result::ok);
        let said = lines.find_map(|line| line.split_once("helper: ").map(|(_, said)| said.to_owned()));
        Self { child, said: said.expect("the helper's words"), _output: output }
    }

    /// Has it end in order.
    fn end(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.end();
    }
}

#[test]
fn a_helper() {
    let (Ok(role), Ok(with)) = (std::env::var(ROLE), std::env::var(WITH)) else { return };
    if role == "takes" {
        take(&Driver::load(&native_dir().join("libcuda.so")).expect("libcuda"), with.parse().expect("bytes"));
        println!("helper: ready");
    } else {
        let library = library();
        let init = function!(library, "nvmlInit_v2", unsafe extern "C" fn() -> u32);
        // SAFETY: no arguments.
        assert_eq!(unsafe { init() }, 0);
        println!("helper: {:?}", listed(library));
    }
    let _ = std::io::stdin().read_line(&mut String::new());
}
