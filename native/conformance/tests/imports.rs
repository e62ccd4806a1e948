//! What the shims of the libraries export, against what packages import.

use sluice_conformance::gpud::libraries_beside;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CString, c_void};
use std::path::PathBuf;

/// What each package imports: the library, the function, and after `@` the version that it asks for: nothing for the
/// library's name.
fn packages() -> Vec<(String, String)> {
    let folder = sluice_testing::package_folder().join("../api/names/libraries");
    let files = std::fs::read_dir(folder).expect("lists").map(|entry| entry.expect("a list").path());
    let read = |file: PathBuf| {
        let package = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        (package, std::fs::read_to_string(file).expect("a list"))
    };
    files.map(read).collect()
}

/// Loads every shim, by the name that programs use.
fn load() -> BTreeMap<String, *mut c_void> {
    let open = |file: PathBuf| {
        let path = CString::new(file.display().to_string()).expect("path");
        // SAFETY: a C string; loading a shim does nothing.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        assert!(!handle.is_null(), "{path:?} cannot be loaded");
        (file.file_name().unwrap_or_default().to_string_lossy().into_owned(), handle)
    };
    libraries_beside().expect("the shims are built").into_iter().map(open).collect()
}

#[test]
fn every_imported_function_is_exported_under_its_version() {
    let libraries = load();
    let mut missing = BTreeSet::new();
    let mut seen = 0;
    let packages = packages();
    for (package, list) in &packages {
        for line in list.lines().filter(|line| !line.starts_with('#')) {
            let (soname, symbol) = line.split_once(' ').expect("library and function");
            let (plain, version) = symbol.split_once('@').map_or((symbol, None), |(plain, at)| (plain, Some(at)));
            let version = version.map(|version| if version.is_empty() { soname } else { version });
            let plain = CString::new(plain).expect("name");
            let version = version.map(|version| CString::new(version).expect("name"));
            let handle = libraries.get(soname).copied().unwrap_or(std::ptr::null_mut());
            // SAFETY: a loaded library (or null, which is not asked) and C strings.
            let found = !handle.is_null()
                && unsafe {
                    match &version {
                        Some(version) => !libc::dlvsym(handle, plain.as_ptr(), version.as_ptr()).is_null(),
                        None => !libc::dlsym(handle, plain.as_ptr()).is_null(),
                    }
                };
            seen += 1;
            if !found {
                missing.insert(format!("{package}: {line}"));
            }
        }
    }
    assert!(packages.len() >= 15 && seen > 6000, "only {seen} names of {} packages were compared", packages.len());
    assert!(missing.is_empty(), "{missing:#?}");
}
