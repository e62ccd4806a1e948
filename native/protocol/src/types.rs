//! Compound values of the messages.

use crate::wire::{DecodeError, Reader, Wire, put_list, take_list};

/// What a loaded module offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModuleInfo {
    /// In the order by which `Launch.function` counts.
    pub functions: Vec<FunctionInfo>,
    pub globals: Vec<GlobalInfo>,
    /// Bytes of the heap that `malloc` of the context's kernels takes from; 0: no module needs one yet.
    pub heap: u64,
}

/// One kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionInfo {
    pub name: String,
    pub parameters: Vec<ParameterInfo>,
    /// CUfunction_attribute → value, e.g. 0 = MAX_THREADS_PER_BLOCK, 1 = SHARED_SIZE_BYTES, 2 = CONST_SIZE_BYTES,
    /// 3 = LOCAL_SIZE_BYTES, 4 = NUM_REGS, 5 = PTX_VERSION, 6 = BINARY_VERSION, 7 = CACHE_MODE_CA,
    /// 8 = MAX_DYNAMIC_SHARED_SIZE_BYTES, 9 = PREFERRED_SHARED_MEMORY_CARVEOUT.
    pub attributes: Vec<(u32, i32)>,
}

/// Place of one parameter in the parameter buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParameterInfo {
    pub offset: u32,
    pub bytes: u32,
}

/// A variable of the module in device memory. Its address is chosen by the driver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GlobalInfo {
    pub name: String,
    pub address: u64,
    pub bytes: u64,
}

/// A client process of a lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseProcess {
    /// What it calls itself in its hello: of its own host, perhaps of a container there.
    pub pid: u32,
    /// Device memory that counts for it.
    pub bytes: u64,
}

impl<'a> Wire<'a> for LeaseProcess {
    fn put(&self, out: &mut Vec<u8>) {
        self.pid.put(out);
        self.bytes.put(out);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self { pid: u32::take(reader)?, bytes: u64::take(reader)? })
    }
}

impl<'a> Wire<'a> for (u32, i32) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok((u32::take(reader)?, i32::take(reader)?))
    }
}

impl<'a> Wire<'a> for ParameterInfo {
    fn put(&self, out: &mut Vec<u8>) {
        self.offset.put(out);
        self.bytes.put(out);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self { offset: u32::take(reader)?, bytes: u32::take(reader)? })
    }
}

impl<'a> Wire<'a> for FunctionInfo {
    fn put(&self, out: &mut Vec<u8>) {
        self.name.put(out);
        put_list(&self.parameters, out);
        put_list(&self.attributes, out);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self { name: String::take(reader)?, parameters: take_list(reader)?, attributes: take_list(reader)? })
    }
}

impl<'a> Wire<'a> for GlobalInfo {
    fn put(&self, out: &mut Vec<u8>) {
        self.name.put(out);
        self.address.put(out);
        self.bytes.put(out);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self { name: String::take(reader)?, address: u64::take(reader)?, bytes: u64::take(reader)? })
    }
}

impl<'a> Wire<'a> for ModuleInfo {
    fn put(&self, out: &mut Vec<u8>) {
        put_list(&self.functions, out);
        put_list(&self.globals, out);
        self.heap.put(out);
    }
    fn take(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(Self { functions: take_list(reader)?, globals: take_list(reader)?, heap: u64::take(reader)? })
    }
}
