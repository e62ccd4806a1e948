//! A module whose variables have addresses.

use super::jit::{self, Compiled};
use crate::arena::Arena;
use crate::error::Fault;
use crate::ir::*;
use crate::module::{GlobalInfo, KernelInfo, Module, Symbol};
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

/// A module placed on a device.
pub struct LoadedModule {
    module: Arc<Module>,
    addresses: Vec<u64>,
    prepared: Mutex<HashMap<String, Arc<Prepared>>>,
}

/// A kernel ready to run: its functions one after the other, constants resolved.
pub struct Prepared {
    pub name: String,
    pub module: Arc<Module>,
    /// The functions, in order of [`PreparedFunction::start`]; the kernel is the first.
    pub functions: Vec<PreparedFunction>,
    /// From a function's index in the module to its index here.
    pub by_index: HashMap<u32, u32>,
    /// Where the module's constants begin and end, in order.
    constants: Vec<(u64, u64)>,
    /// Bytes of static shared memory; dynamic shared memory follows.
    pub shared_bytes: u32,
    /// Whether any of the code may run more than once, so that a block may wait for what another one does.
    pub loops: bool,
    /// The code of the functions, in their order.
    pub compiled: Compiled,
}

/// One function of a prepared kernel.
pub struct PreparedFunction {
    pub index: u32,
    /// Where its code begins among the kernel's instruction addresses.
    pub start: u32,
    pub end: u32,
    /// Row, whether it is 64 bits wide, value.
    pub constants: Vec<(u32, bool, u64)>,
    /// For each barrier its number, if it is a plain one (see [`plain_barrier`]).
    pub plain_barriers: Vec<Option<u8>>,
}

impl Prepared {
    /// The function's decoded form.
    pub fn function(&self, at: u32) -> &Function {
        &self.module.functions[self.functions[at as usize].index as usize]
    }

    /// Whether a constant of the module lies at an address.
    pub fn is_constant(&self, address: u64) -> bool {
        let before = self.constants.partition_point(|(begin, _)| *begin <= address);
        self.constants[..before].last().is_some_and(|(_, end)| address < *end)
    }

    /// Which function an instruction address belongs to.
    pub fn find(&self, pc: u32) -> u32 {
        (self.functions.partition_point(|f| f.end <= pc) as u32).min(self.functions.len() as u32 - 1)
    }
}

impl LoadedModule {
    /// Places a module: `place` chooses the address of each variable, as large and aligned as the variable says.
    /// The variables' first values are written by [`LoadedModule::initialise`].
    pub fn new<E>(
        module: Arc<Module>,
        mut place: impl FnMut(&GlobalInfo) -> Result<u64, E>,
    ) -> Result<LoadedModule, E> {
        let mut addresses = Vec::with_capacity(module.globals.len());
        for global in &module.globals {
            addresses.push(place(global)?);
        }
        Ok(LoadedModule { module, addresses, prepared: Mutex::new(HashMap::new()) })
    }

    /// The module itself.
    pub fn module(&self) -> &Arc<Module> {
        &self.module
    }

    /// The kernel of this name.
    pub fn kernel(&self, name: &str) -> Option<&KernelInfo> {
        self.module.kernel(name)
    }

    /// Address and size of a variable.
    pub fn global(&self, name: &str) -> Option<(u64, u64)> {
        let at = self.module.globals.iter().position(|g| g.name == name)?;
        Some((self.addresses[at], self.module.globals[at].size))
    }

    /// A variable's first value for its place, zeros and addresses included.
    pub fn initial_bytes(&self, global: &GlobalInfo) -> Vec<u8> {
        let mut bytes = global.init.clone();
        bytes.resize(global.size as usize, 0);
        for relocation in &global.relocations {
            let value = match relocation.symbol {
                Symbol::Global(index) => self.addresses.get(index as usize).copied().unwrap_or(0),
                Symbol::Function(index) => FUNCTION_WINDOW + 16 * u64::from(index),
            };
            let value = value.wrapping_add(relocation.addend as u64) & relocation.mask;
            let value = value.checked_shr(relocation.mask.trailing_zeros()).unwrap_or(0).to_le_bytes();
            let (at, count) = (relocation.offset as usize, relocation.bytes as usize);
            if let (Some(to), Some(from)) = (bytes.get_mut(at..at + count), value.get(..count)) {
                to.copy_from_slice(from);
            }
        }
        bytes
    }

    /// Writes every variable's first value into the arena.
    pub fn initialise(&self, arena: &Arena) -> io::Result<()> {
        for (global, address) in self.module.globals.iter().zip(&self.addresses) {
            if global.size > 0 && !global.external {
                arena.write(*address, &self.initial_bytes(global))?;
            }
        }
        Ok(())
    }

    pub(crate) fn prepare(&self, kernel: &str) -> Result<Arc<Prepared>, Fault> {
        let mut cache = self.prepared.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(found) = cache.get(kernel) {
            return Ok(found.clone());
        }
        let is_kernel = |f: &Function| f.entry && f.name == kernel;
        let entry = self.module.functions.iter().position(is_kernel);
        let entry = entry.ok_or_else(|| Fault::InvalidLaunch(format!("no kernel `{kernel}`")))? as u32;
        let reachable = self.module.reachable(entry);
        let layout = self.module.shared_layout(&reachable);
        let mut functions = Vec::new();
        let mut by_index = HashMap::new();
        let mut start = 0;
        for index in reachable {
            let function = &self.module.functions[index as usize];
            if let Some(error) = &function.unsupported {
                let instruction = error.unsupported.clone().unwrap_or_default();
                return Err(Fault::Unsupported { instruction, line: error.line });
            }
            if !function.defined {
                // Runtime functions that the interpreter provides have no body.
                if provided(&function.name).is_some() {
                    continue;
                }
                let instruction = format!("call of undefined {}", function.name);
                return Err(Fault::Unsupported { instruction, line: function.line });
            }
            let resolve = |constant: &Constant| match *constant {
                Constant::Bits(v) => v,
                Constant::Global(g, offset) => self.addresses[g as usize].wrapping_add(offset as u64),
                Constant::Shared(s, offset) => {
                    u64::from(layout.offsets.get(&s).copied().unwrap_or(0)).wrapping_add(offset as u64)
                }
                Constant::Function(f) => FUNCTION_WINDOW + 16 * u64::from(f),
            };
            let constants = function.constants.iter().zip(&function.constant_rows);
            let constants: Vec<_> = constants.map(|((c, wide), row)| (*row, *wide, resolve(c))).collect();
            let plain_barriers = function.barriers.iter().map(|site| plain_barrier(site, &constants)).collect();
            by_index.insert(index, functions.len() as u32);
            let end = start + function.code.len() as u32;
            functions.push(PreparedFunction { index, start, end, constants, plain_barriers });
            start = end;
        }
        let sources: Vec<_> = functions
            .iter()
            .map(|f: &PreparedFunction| (&self.module.functions[f.index as usize], f.constants.as_slice()))
            .collect();
        let loops = sources.iter().any(|(function, _)| may_loop(function));
        let compiled = jit::compile(&sources)?;
        let placed = self.module.globals.iter().zip(&self.addresses);
        let constants = placed.filter(|(global, _)| global.constant && global.size > 0);
        let mut constants: Vec<_> = constants.map(|(global, at)| (*at, at.saturating_add(global.size))).collect();
        constants.sort_unstable();
        let prepared = Arc::new(Prepared {
            name: kernel.to_string(),
            module: self.module.clone(),
            functions,
            by_index,
            constants,
            shared_bytes: layout.bytes,
            loops,
            compiled,
        });
        cache.insert(kernel.to_string(), prepared.clone());
        Ok(prepared)
    }
}

/// Whether a function's code may run more than once in a thread, or stand for several blocks.
fn may_loop(function: &Function) -> bool {
    function.code.iter().enumerate().any(|(at, i)| match i.op {
        Op::Branch => i.e as usize <= at,
        Op::BranchTable => function.tables[i.e as usize].iter().any(|target| *target as usize <= at),
        Op::Call | Op::TakeBlock => true,
        _ => false,
    })
}

/// The number of a barrier, if it is known and the whole block waits there for nothing else: what most kernels have.
fn plain_barrier(site: &BarrierSite, constants: &[(u32, bool, u64)]) -> Option<u8> {
    if site.arrive || site.reduction.is_some() || site.count != NONE {
        return None;
    }
    let number = constants.iter().find(|(row, ..)| *row == site.id)?.2;
    (number < 16).then_some(number as u8)
}

/// Functions that device code may call without defining them.
pub fn provided(name: &str) -> Option<Callee> {
    Some(match name {
        "vprintf" => Callee::Print,
        "__assertfail" => Callee::Assert,
        "malloc" => Callee::Malloc,
        "free" => Callee::Free,
        _ => return None,
    })
}
