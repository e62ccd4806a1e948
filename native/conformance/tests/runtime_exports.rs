//! What the built `libcudart.so.12` and `.13` export, against the public symbols of NVIDIA's and what frameworks import.

use sluice_conformance::gpud::native_dir;
use std::collections::BTreeSet;
use std::process::Command;

/// `symbol@@version` of every exported function.
fn exports(major: u32) -> BTreeSet<String> {
    let path = native_dir().join(format!("libcudart{major}.so"));
    let output = Command::new("readelf").args(["-W", "--dyn-syms"]).arg(&path).output().expect("binutils are there");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let defined = text.lines().filter(|line| line.contains(" FUNC ") && !line.contains(" UND "));
    defined.filter_map(|line| line.split_whitespace().last().map(str::to_owned)).collect()
}

fn lines(list: &str) -> impl Iterator<Item = &str> {
    list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[test]
fn every_public_symbol_is_exported_with_its_version() {
    for (major, list) in
        [(12, include_str!("../../api/names/runtime-12.txt")), (13, include_str!("../../api/names/runtime-13.txt"))]
    {
        let exported = exports(major);
        let wanted = lines(list).map(|name| format!("{name}@@libcudart.so.{major}"));
        let missing: Vec<String> = wanted.filter(|symbol| !exported.contains(symbol)).collect();
        assert!(missing.is_empty(), "libcudart.so.{major} lacks {missing:?}");
    }
}

#[test]
fn what_frameworks_import_is_exported() {
    let mut of = (String::new(), BTreeSet::new());
    let mut lists = 0;
    for line in lines(include_str!("../../api/names/runtime-imports.txt")) {
        if let Some(title) = line.strip_prefix('[') {
            let major: u32 = title.trim_end_matches(']').rsplit('.').next().and_then(|n| n.parse().ok()).expect(title);
            let names = exports(major).iter().map(|symbol| symbol.split('@').next().unwrap_or("").to_owned()).collect();
            of = (title.to_owned(), names);
            lists += 1;
        } else {
            assert!(of.1.contains(line), "{} lacks {line}", of.0);
        }
    }
    assert_eq!(lists, 9);
}

#[test]
fn each_library_has_the_originals_name() {
    for major in [12, 13] {
        let path = native_dir().join(format!("libcudart{major}.so"));
        let output = Command::new("readelf").args(["-d"]).arg(&path).output().expect("binutils are there");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains(&format!("Library soname: [libcudart.so.{major}]")), "{text}");
    }
}
