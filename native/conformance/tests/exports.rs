//! What `libcuda.so.1` exports and what `cuGetProcAddress` answers, against the names of the public headers.

use sluice_conformance::driver::Library;
use sluice_conformance::gpud::native_dir;
use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_void};

type GetProcAddress = unsafe extern "C" fn(*const c_char, *mut *mut c_void, i32, u64, *mut i32) -> u32;

const LISTS: [&str; 2] = [include_str!("../../api/names/driver-12.txt"), include_str!("../../api/names/driver-13.txt")];

fn names() -> BTreeMap<&'static str, i32> {
    let lines = LISTS.iter().flat_map(|list| list.lines());
    lines.filter_map(|line| line.split_once(' ')).map(|(name, since)| (name, since.parse().expect("number"))).collect()
}

/// `cuMemcpyHtoD_v2_ptds` → (`cuMemcpyHtoD`, per thread).
fn base(symbol: &str) -> (&str, bool) {
    let plain = symbol.strip_suffix("_ptsz").or_else(|| symbol.strip_suffix("_ptds"));
    let (name, per_thread) = plain.map_or((symbol, false), |plain| (plain, true));
    let versioned = name.rsplit_once("_v").filter(|(_, number)| number.bytes().all(|digit| digit.is_ascii_digit()));
    (versioned.map_or(name, |(name, _)| name), per_thread)
}

struct Driver {
    library: Library,
    client: Library,
    get_proc_address: GetProcAddress,
}

impl Driver {
    fn load() -> Self {
        let library = Library::open(&native_dir().join("libcuda.so")).expect("built");
        let client = Library::open(&native_dir().join("libsluice_client.so")).expect("built");
        let found = library.symbol("cuGetProcAddress_v2").expect("exported");
        // SAFETY: the CUDA Driver API gives the function this signature.
        let get_proc_address = unsafe { std::mem::transmute::<*mut c_void, GetProcAddress>(found) };
        Self { library, client, get_proc_address }
    }

    /// The result, the symbol's status and what was found.
    fn ask(&self, name: &str, version: i32, flags: u64) -> (u32, i32, *mut c_void) {
        let (text, mut function, mut status) = (CString::new(name).expect("text"), std::ptr::null_mut(), -1);
        // SAFETY: a C string and live locals.
        let code =
            unsafe { (self.get_proc_address)(text.as_ptr(), &raw mut function, version, flags, &raw mut status) };
        (code, status, function)
    }

    /// The client's entry point of a symbol.
    fn entry(&self, symbol: &str) -> *mut c_void {
        self.client.symbol(&format!("sluice_{symbol}")).expect("exported")
    }
}

#[test]
fn every_public_function_is_exported() {
    let driver = Driver::load();
    let missing: Vec<&str> = names().into_keys().filter(|name| driver.library.symbol(name).is_err()).collect();
    assert!(names().len() > 700 && missing.is_empty(), "{missing:?}");
}

#[test]
fn each_version_and_stream_flag_finds_its_own_variant() {
    let driver = Driver::load();
    let names = names();
    for (&symbol, &since) in &names {
        let (name, per_thread) = base(symbol);
        let mut flags = if per_thread { vec![2] } else { vec![0, 1] };
        if !per_thread && !names.keys().any(|other| *other != symbol && other.starts_with(symbol) && base(other).1) {
            // Without a variant for threads there is one answer; an older one that has it does not come back.
            flags.push(2);
        }
        for flags in flags {
            assert_eq!(driver.ask(name, since, flags), (0, 0, driver.entry(symbol)), "{name} {since} flags {flags}");
        }
    }
}

#[test]
fn what_is_not_there_is_told_apart_from_what_is_too_new() {
    let driver = Driver::load();
    let none = std::ptr::null_mut();
    assert_eq!(driver.ask("cuNobodyHasThis", 13000, 0), (500, 1, none));
    assert_eq!(driver.ask("", 0, 0), (500, 1, none));
    // Names carry no version.
    assert_eq!(driver.ask("cuMemAlloc_v2", 13000, 0), (500, 1, none));
    assert_eq!(driver.ask("cuGraphCreate", 9020, 0), (500, 2, none));
    assert_eq!(driver.ask("cuMemAllocAsync", 11010, 2), (500, 2, none));
    // Before per-thread default streams the only variant answers.
    assert_eq!(driver.ask("cuMemcpyHtoD", 6050, 2).2, driver.entry("cuMemcpyHtoD_v2"));
    assert_eq!(driver.ask("cuCtxCreate", 11040, 0).2, driver.entry("cuCtxCreate_v3"));
    assert_eq!(driver.ask("cuInit", 13000, 4).0, 1);
}
