//! The CUDA Driver API (`libcuda.so.1`), one file an object: every public function of the CUDA 12 and 13 headers.

mod array;
mod context;
mod copy;
mod device;
mod diagnostic;
mod event;
mod external;
mod graph;
mod graphics;
mod green;
mod init;
mod launch;
mod managed;
mod memory;
mod module;
mod multicast;
mod occupancy;
mod pointer;
mod pool;
mod stream;
mod tensor_map;
mod vmm;

use crate::function::Function;

pub use init::BEFORE_INIT;
pub use managed::TOLD;

const ALL: &[&[Function]] = &[
    init::SERVED,
    init::REFUSED,
    device::SERVED,
    device::REFUSED,
    context::SERVED,
    context::REFUSED,
    green::REFUSED,
    memory::SERVED,
    memory::REFUSED,
    pool::SERVED,
    vmm::SERVED,
    copy::SERVED,
    copy::REFUSED,
    pointer::SERVED,
    managed::REFUSED,
    array::REFUSED,
    module::SERVED,
    module::REFUSED,
    launch::SERVED,
    launch::REFUSED,
    occupancy::SERVED,
    tensor_map::SERVED,
    stream::SERVED,
    event::SERVED,
    graph::SERVED,
    graph::REFUSED,
    external::REFUSED,
    graphics::REFUSED,
    multicast::REFUSED,
    diagnostic::REFUSED,
];

/// Every function of the driver library.
pub fn functions() -> impl Iterator<Item = &'static Function> {
    ALL.iter().copied().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::Way;
    use std::collections::{BTreeMap, BTreeSet};

    fn exports() -> BTreeMap<String, u32> {
        functions().flat_map(Function::exports).map(|export| (export.symbol, export.since)).collect()
    }

    /// `symbol version` of every function of a CUDA release's public headers.
    fn named(list: &'static str) -> BTreeMap<String, u32> {
        let line = |line: &'static str| {
            let (symbol, since) = line.split_once(' ').expect("symbol and version");
            (symbol.to_owned(), since.parse().expect("version"))
        };
        list.lines().map(line).collect()
    }

    #[test]
    fn every_function_of_the_public_headers_is_declared_with_its_version() {
        let declared = exports();
        for list in [include_str!("../../names/driver-12.txt"), include_str!("../../names/driver-13.txt")] {
            let wanted = named(list);
            assert!(wanted.len() > 600);
            let wrong: Vec<_> = wanted.iter().filter(|(symbol, since)| declared.get(*symbol) != Some(since)).collect();
            assert!(wrong.is_empty(), "{wrong:?}");
        }
    }

    #[test]
    fn nothing_is_declared_that_no_header_has() {
        let mut known = named(include_str!("../../names/driver-12.txt"));
        known.extend(named(include_str!("../../names/driver-13.txt")));
        let unknown: Vec<_> = exports().into_keys().filter(|symbol| !known.contains_key(symbol)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn symbols_are_unique_and_so_are_names_at_a_version() {
        let symbols: BTreeSet<&str> = functions().map(|f| f.symbol).collect();
        let names: BTreeSet<(&str, u32)> = functions().map(|f| (f.name(), f.since)).collect();
        assert_eq!(symbols.len(), functions().count());
        assert_eq!(names.len(), functions().count());
    }

    #[test]
    fn an_implementation_is_that_of_a_served_function_with_the_same_parameters() {
        let kinds = |f: &Function| f.parameters.iter().map(|p| p.kind).collect::<Vec<_>>();
        for function in functions().filter(|f| f.implementation != f.symbol) {
            let same = functions().find(|f| f.symbol == function.implementation).expect(function.symbol);
            assert_eq!(same.implementation, same.symbol, "{}", function.symbol);
            assert_eq!(kinds(function), kinds(same), "{}", function.symbol);
        }
    }

    #[test]
    fn all_that_numba_cuda_calls_is_served() {
        let called = [
            "cuInit",
            "cuCtxGetCurrent",
            "cuDeviceGetCount",
            "cuDriverGetVersion",
            "cuDeviceGetAttribute",
            "cuDeviceGetName",
            "cuDeviceGetUuid_v2",
            "cuDevicePrimaryCtxRetain",
            "cuCtxSetCurrent",
            "cuCtxPopCurrent_v2",
            "cuCtxPushCurrent_v2",
            "cuMemGetInfo_v2",
            "cuMemAlloc_v2",
            "cuCtxGetDevice",
            "cuMemcpyHtoD_v2",
            "cuLinkCreate_v2",
            "cuLinkAddData_v2",
            "cuLinkComplete",
            "cuLinkDestroy",
            "cuLibraryLoadData",
            "cuLibraryGetKernel",
            "cuKernelGetAttribute",
            "cuLaunchKernelEx",
            "cuCtxSynchronize",
            "cuMemcpyDtoH_v2",
            "cuDevicePrimaryCtxRelease_v2",
        ];
        for symbol in called {
            let function = functions().find(|f| f.symbol == symbol);
            assert!(function.is_some_and(|f| !matches!(f.way, Way::Refused(_))), "{symbol}");
        }
    }
}
