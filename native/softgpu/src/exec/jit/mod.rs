//! Kernels compiled for the host: control stays with [`super::warp`], what lies between is native code.

mod affine;
mod emit;
mod fixed;
mod hint;
mod load;
mod plan;
mod recipe;
pub mod runtime;
mod store;

pub use runtime::{Code, Environment, Known};

use crate::error::Fault;
use crate::ir::{Function, Op};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{AbiParam, FuncRef, Signature, Type};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, default_libcall_names};
use emit::{Emitter, Outside};
use plan::{Constants, Part, Plan};
use runtime::Site;
use std::collections::HashMap;

/// Most loads in a loop that is optimised: the optimiser moves arithmetic behind the loads that feed it, and where those
/// are many, what they load fills the processor's registers and then the stack.
const MOST_LOADS: usize = 8;

/// A compiled run of instructions.
#[derive(Clone, Copy)]
pub struct Segment {
    pub code: Code,
    /// The instruction behind it, counted from the function's first.
    pub end: u32,
}

/// What was compiled of one function: for each instruction the segment that begins there.
pub type Segments = Vec<Option<Segment>>;

/// The code of a kernel.
pub struct Compiled {
    module: Option<JITModule>,
    /// Accesses in the code, which refers to them by address.
    #[expect(clippy::vec_box, reason = "their addresses must stay")]
    sites: Vec<Box<Site>>,
    /// How many accesses are followed (see [`super::trail`]).
    pub trails: usize,
    /// Segments of each function, in the order given to [`compile`].
    pub functions: Vec<Segments>,
}

// SAFETY: the code and the sites are not changed after compilation; the pointers in the sites are to instructions of
// the module that whoever holds this also holds.
unsafe impl Send for Compiled {}
// SAFETY: as above.
unsafe impl Sync for Compiled {}

impl Compiled {
    /// How many accesses there are: the length of [`Environment::known`].
    pub fn accesses(&self) -> usize {
        self.sites.len()
    }
}

impl Drop for Compiled {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: nobody runs a kernel's code without holding what holds this.
            unsafe { module.free_memory() };
        }
    }
}

fn failed(what: &dyn std::fmt::Display) -> Fault {
    Fault::LaunchFailure(format!("the kernel could not be compiled for the host: {what}"))
}

/// A function, and its constants: row, whether it is 64 bits wide, value.
pub type Source<'a> = (&'a Function, &'a [(u32, bool, u64)]);

/// Compiles functions, each with the values of its constant rows.  The functions must outlive the result.
pub fn compile(functions: &[Source]) -> Result<Compiled, Fault> {
    let isa = |level: &str| {
        let mut flags = settings::builder();
        for (name, value) in
            [("opt_level", level), ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" })]
        {
            flags.set(name, value).map_err(|e| failed(&e))?;
        }
        let native = cranelift_native::builder().map_err(|e| failed(&e))?;
        native.finish(settings::Flags::new(flags)).map_err(|e| failed(&e))
    };
    let module = JITModule::new(JITBuilder::with_isa(isa("none")?, default_libcall_names()));
    let mut compiler = Compiler {
        context: module.make_context(),
        module,
        optimiser: isa("speed")?,
        builder: FunctionBuilderContext::new(),
        sites: Vec::new(),
        trails: 0,
    };
    let native_fma = native_fma();
    let mut ids = Vec::new();
    for (number, (function, constants)) in functions.iter().enumerate() {
        let constants = Constants(constants.iter().map(|(row, _, value)| (*row, *value)).collect::<HashMap<_, _>>());
        let plan = Plan::new(function, &constants, native_fma);
        let mut subject = Subject { number, function, plan: &plan, constants: &constants, of_memory: HashMap::new() };
        for segment in &plan.segments {
            let id = compiler.segment(&mut subject, segment)?;
            ids.push((number, segment.start, segment.end, id));
        }
    }
    let Compiler { mut module, sites, trails, .. } = compiler;
    module.finalize_definitions().map_err(|e| failed(&e))?;
    let mut out: Vec<Segments> = functions.iter().map(|(f, _)| vec![None; f.code.len()]).collect();
    for (number, start, end, id) in ids {
        let code = module.get_finalized_function(id);
        // SAFETY: the function was compiled with the signature of `Code`.
        let code = unsafe { std::mem::transmute::<*const u8, Code>(code) };
        out[number][start] = Some(Segment { code, end: end as u32 });
    }
    Ok(Compiled { module: Some(module), sites, trails, functions: out })
}

/// The function whose segments are compiled.
struct Subject<'a> {
    number: usize,
    function: &'a Function,
    plan: &'a Plan,
    constants: &'a Constants,
    /// Its accesses by their description.
    of_memory: HashMap<u32, u32>,
}

struct Compiler {
    /// Compiles what it is given as it is.
    module: JITModule,
    /// The same processor, for functions that are optimised.
    optimiser: OwnedTargetIsa,
    context: cranelift_codegen::Context,
    builder: FunctionBuilderContext,
    #[expect(clippy::vec_box, reason = "code refers to them by address")]
    sites: Vec<Box<Site>>,
    /// Accesses that are followed.
    trails: usize,
}

impl Compiler {
    /// Compiles a segment, after the general bodies of its loops.
    fn segment(&mut self, subject: &mut Subject, segment: &plan::Segment) -> Result<FuncId, Fault> {
        let mut general = Vec::new();
        let crowded = segment.parts.iter().any(|part| match part {
            Part::Loop(range) => {
                let loads = subject.function.code[range.clone()].iter().filter(|i| i.op == Op::Load);
                loads.count() > MOST_LOADS
            }
            _ => false,
        });
        for part in &segment.parts {
            let Part::Loop(range) = part else { continue };
            if !emit::is_long(range) {
                continue;
            }
            let code = &subject.function.code[range.clone()];
            let name = format!("{}.{}.{}", subject.number, segment.start, range.start);
            general
                .push(self.define(subject, &name, &[I64, I64, I32, I64, I64], &[], !crowded, |e, _| e.general(code))?);
        }
        let name = format!("{}.{}", subject.number, segment.start);
        self.define(subject, &name, &[I64, I64, I32], &general, !crowded, |e, general| e.segment(segment, general))
    }

    /// Compiles one function of the host, which may call those in `callees`.
    fn define<'a>(
        &mut self,
        subject: &mut Subject<'a>,
        name: &str,
        parameters: &[Type],
        callees: &[FuncId],
        optimise: bool,
        emit: impl FnOnce(Emitter<'a, '_>, &[FuncRef]),
    ) -> Result<FuncId, Fault> {
        let convention = self.module.isa().default_call_conv();
        let signature = |parameters: &[Type]| {
            let mut s = Signature::new(convention);
            s.params.extend(parameters.iter().map(|t| AbiParam::new(*t)));
            s.returns.push(AbiParam::new(I32));
            s
        };
        let mut learn = signature(&[I64, I64, I64]);
        learn.returns.clear();
        let outside = [signature(&[I64, I64, I64, I32]), signature(&[I64, I64, I64, I64, I32, I32]), learn];
        self.context.func.signature = signature(parameters);
        let id = self.module.declare_function(name, Linkage::Local, &self.context.func.signature);
        let id = id.map_err(|e| failed(&e))?;
        let callees: Vec<FuncRef> =
            callees.iter().map(|id| self.module.declare_func_in_func(*id, &mut self.context.func)).collect();
        let mut b = FunctionBuilder::new(&mut self.context.func, &mut self.builder);
        let signatures = outside.map(|s| b.import_signature(s));
        let outside = Outside {
            function: subject.function,
            plan: subject.plan,
            constants: subject.constants,
            call: runtime::call as *const () as usize,
            load: runtime::load as *const () as usize,
            learn: runtime::learn as *const () as usize,
            sites: &mut self.sites,
            trails: &mut self.trails,
            of_memory: &mut subject.of_memory,
        };
        emit(Emitter::new(b, outside, signatures), &callees);
        if optimise {
            let done = self.context.optimize(&*self.optimiser, &mut ControlPlane::default());
            done.map_err(|e| failed(&format!("{e:?}")))?;
        }
        self.module.define_function(id, &mut self.context).map_err(|e| failed(&format!("{e:?}")))?;
        self.module.clear_context(&mut self.context);
        Ok(id)
    }
}

/// Whether the processor multiplies and adds in one step; without, the functions of [`super::alu`] are faster.
fn native_fma() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    true
}
