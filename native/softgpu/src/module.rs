//! What a parsed module offers: kernels, variables, and the functions behind them.

use crate::error::PtxError;
use crate::ir::Function;
use crate::lower::target_of;
use std::collections::{HashMap, HashSet};

/// A kernel's parameter in the launch's parameter buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamInfo {
    pub offset: u32,
    pub size: u32,
    pub align: u32,
}

/// What a launch needs to know about a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelInfo {
    pub name: String,
    pub params: Vec<ParamInfo>,
    /// Bytes of the whole parameter buffer.
    pub param_bytes: u32,
    /// Bytes of statically declared shared memory.
    pub shared_bytes: u32,
    /// Bytes of the module's `.const` variables.
    pub const_bytes: u32,
    /// Bytes of local memory per thread.
    pub local_bytes: u32,
    /// An estimate of a GPU's 32-bit registers per thread, at most 255.
    pub registers: u32,
    /// Most threads in a block (`.maxntid`, `.reqntid`, else 1024).
    pub max_threads: u32,
    /// The block that the kernel requires (`.reqntid`).
    pub required_block: Option<[u32; 3]>,
    /// The virtual architecture that it was compiled for (`.target sm_75` is 75). That is what drivers answer to
    /// `CU_FUNC_ATTRIBUTE_PTX_VERSION`, whatever its name says, and CUB chooses its code by it.
    pub ptx_version: u32,
    /// The module's `.target`, such as `sm_75`.
    pub target: String,
    /// The first instruction on the kernel's ways that the engine does not support.
    pub unsupported: Option<PtxError>,
}

/// What a word in a variable's initial value refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// The variable with this index in [`Module::globals`].
    Global(u32),
    /// The module's function with this index.
    Function(u32),
}

/// A word of an initial value that is an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Where in the variable, in bytes.
    pub offset: u32,
    pub symbol: Symbol,
    pub addend: i64,
    /// Which bits of the address: they are moved to the right end.
    pub mask: u64,
    /// Bytes of the word.
    pub bytes: u32,
}

/// A `.global` or `.const` variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobalInfo {
    pub name: String,
    pub size: u64,
    pub align: u32,
    /// `.const` rather than `.global`.
    pub constant: bool,
    /// Initial bytes; what is missing up to `size` is zero.
    pub init: Vec<u8>,
    pub relocations: Vec<Relocation>,
    /// Only declared here (`.extern`).
    pub external: bool,
}

/// A `.shared` variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedVariable {
    pub name: String,
    pub size: u32,
    pub align: u32,
    /// `.extern`: the launch's dynamic shared memory.
    pub external: bool,
}

/// What a program may call of CUDA's device runtime without defining it, in PTX.
const DEVICE_RUNTIME: &str = include_str!("device_runtime.ptx");

/// Parsed and verified PTX.
#[derive(Clone, Debug, Default)]
pub struct Module {
    pub(crate) version: u32,
    pub(crate) target: String,
    pub(crate) functions: Vec<Function>,
    pub(crate) globals: Vec<GlobalInfo>,
    pub(crate) shared: Vec<SharedVariable>,
    pub(crate) kernels: Vec<KernelInfo>,
    /// `.file` directives.
    pub(crate) files: HashMap<u32, String>,
    /// `.loc` directives in order: line of the PTX, file, line there.  A function begins with file 0.
    pub(crate) locations: Vec<(u32, u32, u32)>,
}

/// Functions in the order in which they were found.
#[derive(Default)]
struct Found {
    order: Vec<u32>,
    known: HashSet<u32>,
}

impl Found {
    fn add(&mut self, function: u32) {
        if self.known.insert(function) {
            self.order.push(function);
        }
    }

    /// Adds a function and all that it calls by name.
    fn follow(&mut self, functions: &[Function], from: u32) {
        let mut at = self.order.len();
        self.add(from);
        while let Some(function) = self.order.get(at) {
            functions[*function as usize].callees.iter().for_each(|callee| self.add(*callee));
            at += 1;
        }
    }
}

/// Where each shared variable of a kernel lies, and how long they are together.
pub(crate) struct SharedLayout {
    pub offsets: HashMap<u32, u32>,
    pub bytes: u32,
}

impl Module {
    /// Parses PTX text, which may end in NULs.  Errors carry line and column; an instruction that the engine lacks
    /// does not fail the module but the kernels that can reach it ([`KernelInfo::unsupported`]).
    pub fn parse(ptx: &[u8]) -> Result<Module, PtxError> {
        let end = ptx.iter().rposition(|b| *b != 0).map_or(0, |i| i + 1);
        let text = std::str::from_utf8(&ptx[..end]).map_err(|e| {
            let line = ptx[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count() as u32 + 1;
            PtxError::syntax(line, 1, "the text is not UTF-8")
        })?;
        let mut module = crate::parser::parse(text)?;
        if module.functions.iter().any(|f| !f.defined && f.name.starts_with("cudaCG")) {
            // Behind the program's own text, so that its lines keep their numbers.
            module = crate::parser::parse(&format!("{text}\n{DEVICE_RUNTIME}"))?;
        }
        module.describe_kernels();
        Ok(module)
    }

    /// Names of the `.global` and `.const` variables that PTX declares for everybody to see, whatever else is in it: PTX
    /// that is newer than this engine has them, too. None where it is not even made of tokens.
    pub fn names_of_variables(ptx: &[u8]) -> Vec<String> {
        let end = ptx.iter().rposition(|b| *b != 0).map_or(0, |i| i + 1);
        let tokens = std::str::from_utf8(&ptx[..end]).ok().and_then(|text| crate::lexer::tokens(text).ok());
        crate::parser::names_of_variables(&tokens.unwrap_or_default())
    }

    /// File and line of the program for a line of the PTX.
    pub(crate) fn source_of(&self, line: u32) -> Option<(String, u32)> {
        let at = self.locations.partition_point(|l| l.0 <= line).checked_sub(1)?;
        let (_, file, line) = self.locations[at];
        Some((self.files.get(&file)?.clone(), line))
    }

    /// The kernels (`.entry`) of the module.
    pub fn kernels(&self) -> impl Iterator<Item = &KernelInfo> {
        self.kernels.iter()
    }

    /// The kernel of this name.
    pub fn kernel(&self, name: &str) -> Option<&KernelInfo> {
        self.kernels.iter().find(|k| k.name == name)
    }

    /// Whether it calls `malloc` or `free`, which need a [`crate::Heap`].
    pub fn uses_heap(&self) -> bool {
        use crate::ir::Callee::{Free, Malloc};
        let provided = |f: &Function| crate::exec::provided(&f.name);
        self.functions.iter().any(|f| !f.defined && matches!(provided(f), Some(Malloc | Free)))
    }

    /// The variables of the module that live in device memory.
    pub fn globals(&self) -> impl Iterator<Item = &GlobalInfo> {
        self.globals.iter()
    }

    /// Indices of the functions that can run when this one is launched, itself first.
    pub(crate) fn reachable(&self, from: u32) -> Vec<u32> {
        let mut seen = Found::default();
        seen.follow(&self.functions, from);
        let calls_pointer = |f: &u32| {
            let calls = &self.functions[*f as usize].calls;
            calls.iter().any(|c| matches!(c.callee, crate::ir::Callee::Pointer(_)))
        };
        if !seen.order.iter().any(calls_pointer) {
            return seen.order;
        }
        // A function pointer may have come from a variable's first value, or from another kernel that took it.
        let relocations = self.globals.iter().flat_map(|g| &g.relocations);
        let first = relocations.filter_map(|r| match r.symbol {
            Symbol::Function(f) => Some(f),
            Symbol::Global(_) => None,
        });
        // What cannot run is left out of the latter, as nothing says that this kernel calls it: then it is no function.
        let runs = |f: &u32| {
            let f = &self.functions[*f as usize];
            f.unsupported.is_none() && (f.defined || crate::exec::provided(&f.name).is_some())
        };
        let taken = self.functions.iter().flat_map(|f| f.taken.iter().copied());
        let taken = taken.filter(|f| self.reachable_direct(*f).iter().all(runs));
        let mut more: Vec<u32> = first.chain(taken).collect();
        more.sort_unstable();
        more.dedup();
        for f in more {
            seen.follow(&self.functions, f);
        }
        seen.order
    }

    fn reachable_direct(&self, from: u32) -> Vec<u32> {
        let mut seen = Found::default();
        seen.follow(&self.functions, from);
        seen.order
    }

    /// Lays out the shared variables that these functions name; dynamic shared memory begins at the end.
    pub(crate) fn shared_layout(&self, functions: &[u32]) -> SharedLayout {
        let mut used: Vec<u32> = functions.iter().flat_map(|f| self.functions[*f as usize].shared.clone()).collect();
        used.sort_unstable();
        used.dedup();
        let mut offsets = HashMap::new();
        let mut bytes = 0u32;
        for index in used.iter().filter(|i| !self.shared[**i as usize].external) {
            let variable = &self.shared[*index as usize];
            bytes = bytes.next_multiple_of(variable.align.max(1));
            offsets.insert(*index, bytes);
            bytes = bytes.saturating_add(variable.size);
        }
        let external = |i: &&u32| self.shared[**i as usize].external;
        let align = used.iter().filter(external).map(|i| self.shared[*i as usize].align).max();
        if let Some(align) = align {
            bytes = bytes.next_multiple_of(align.clamp(16, 1024));
        }
        for index in used.iter().filter(external) {
            offsets.insert(*index, bytes);
        }
        SharedLayout { offsets, bytes }
    }

    fn describe_kernels(&mut self) {
        let mut kernels = Vec::new();
        let constants: u64 = self.globals.iter().filter(|g| g.constant && !g.external).map(|g| g.size).sum();
        for (index, function) in self.functions.iter().enumerate() {
            if !function.entry {
                continue;
            }
            let reachable = self.reachable(index as u32);
            let first = |f: &u32| {
                let f = &self.functions[*f as usize];
                let undefined = || PtxError::unsupported(f.line, 1, format!("call of undefined {}", f.name));
                let missing = !f.defined && crate::exec::provided(&f.name).is_none();
                f.unsupported.clone().or_else(|| missing.then(undefined))
            };
            let last = function.params.last();
            kernels.push(KernelInfo {
                name: function.name.clone(),
                params: function
                    .params
                    .iter()
                    .map(|p| ParamInfo { offset: p.offset, size: p.size, align: p.align })
                    .collect(),
                param_bytes: last.map_or(0, |p| p.offset + p.size),
                shared_bytes: self.shared_layout(&reachable).bytes,
                local_bytes: reachable
                    .iter()
                    .fold(0, |bytes: u32, f| bytes.saturating_add(self.functions[*f as usize].depot_bytes)),
                registers: registers(function),
                const_bytes: constants as u32,
                max_threads: function.max_threads,
                required_block: function.required,
                ptx_version: target_of(&self.target).unwrap_or_default(),
                target: self.target.clone(),
                unsupported: reachable.iter().find_map(first),
            });
        }
        self.kernels = kernels;
    }
}

/// 32-bit registers of a multiprocessor, and the step in which they are given to threads.
const REGISTERS: u32 = 65_536;
const REGISTER_STEP: u32 = 8;

/// What a compiler would have given a thread: never so many that the largest block that may be launched does not fit.
/// Programs divide by the occupancy that follows from it.
fn registers(function: &Function) -> u32 {
    let fits = REGISTERS / function.max_threads / REGISTER_STEP * REGISTER_STEP;
    let most = if function.most_registers == 0 { 255 } else { function.most_registers };
    function.registers.clamp(16, 255).min(fits).min(most)
}
