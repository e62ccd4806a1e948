//! The libraries beside the driver, called inside this process as their shims call them.

use sluice_api::libraries;
use sluice_client::generated::{sluice_cuMemAlloc_v2, sluice_cuMemcpyDtoH_v2, sluice_cuMemcpyHtoD_v2};
use sluice_client::library::call_with_slots;

/// One library under one of its names.
#[derive(Clone, Copy)]
pub struct Library {
    id: u32,
    library: &'static libraries::Library,
}

impl Library {
    /// The library of this name and the number in its SONAME.
    pub fn load(name: &str, abi: u32) -> Self {
        let found = libraries::libraries().iter().find(|library| library.source.name == name).expect("declared");
        Self { id: u32::from(found.source.number) << 16 | abi, library: found.get() }
    }

    /// Calls a function; integers and pointers as they are, floating-point numbers as their bits.
    pub fn call(&self, symbol: &str, slots: &[usize]) -> u32 {
        self.answer(symbol, slots) as u32
    }

    /// As [`Library::call`], of a function that answers more than a status.
    pub fn answer(&self, symbol: &str, slots: &[usize]) -> usize {
        let at = self.library.functions.iter().position(|function| function.symbol == symbol);
        let at = at.unwrap_or_else(|| panic!("{symbol} is not declared"));
        let wanted = self.library.functions[at].parameters.len();
        assert!(slots.len() >= wanted, "{symbol} has {wanted} parameters");
        // SAFETY: as many slots as parameters; the test keeps what they point to.
        unsafe { call_with_slots(self.id, at as u32, slots) }
    }

    /// Calls a function that must succeed.
    pub fn run(&self, symbol: &str, slots: &[usize]) {
        assert_eq!(self.call(symbol, slots), 0, "{symbol}: {:?}", sluice_client::message::take());
    }
}

/// Device memory with these contents.
pub fn upload(data: &[u8]) -> u64 {
    let mut address = 0;
    // SAFETY: live locals; the allocation is as long as the data.
    unsafe {
        assert_eq!(sluice_cuMemAlloc_v2(&raw mut address, data.len().max(1)), 0);
        assert_eq!(sluice_cuMemcpyHtoD_v2(address, data.as_ptr().cast(), data.len()), 0);
    }
    address
}

/// The contents of device memory.
pub fn download(address: u64, bytes: usize) -> Vec<u8> {
    let mut data = vec![0; bytes];
    // SAFETY: room for the bytes.
    unsafe { assert_eq!(sluice_cuMemcpyDtoH_v2(data.as_mut_ptr().cast(), address, bytes), 0) };
    data
}
