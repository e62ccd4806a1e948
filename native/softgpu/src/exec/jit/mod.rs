//! Kernels compiled for the host: control stays with [`super::warp`], what lies between is native code.

mod emit;
mod hint;
mod load;
mod plan;
mod recipe;
pub mod runtime;
mod store;

pub use runtime::{Code, Environment, Known};

use crate::error::Fault;
use crate::ir::Function;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{AbiParam, Signature};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Linkage, Module, default_libcall_names};
use emit::{Emitter, Outside};
use plan::{Constants, Plan};
use runtime::Site;
use std::collections::HashMap;

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
    let mut flags = settings::builder();
    for (name, value) in
        [("opt_level", "speed"), ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" })]
    {
        flags.set(name, value).map_err(|e| failed(&e))?;
    }
    let native = cranelift_native::builder().map_err(|e| failed(&e))?;
    let isa = native.finish(settings::Flags::new(flags)).map_err(|e| failed(&e))?;
    let mut module = JITModule::new(JITBuilder::with_isa(isa, default_libcall_names()));
    let convention = module.isa().default_call_conv();
    let signature = |params: &[cranelift_codegen::ir::Type]| {
        let mut s = Signature::new(convention);
        s.params.extend(params.iter().map(|t| AbiParam::new(*t)));
        s.returns.push(AbiParam::new(I32));
        s
    };
    let segment_signature = signature(&[I64, I64, I32]);
    let call_signature = signature(&[I64, I64, I64, I32]);
    let load_signature = signature(&[I64, I64, I64, I64, I32, I32]);
    let mut learn_signature = signature(&[I64, I64, I64]);
    learn_signature.returns.clear();
    let native_fma = native_fma();
    let mut sites = Vec::new();
    let mut ids = Vec::new();
    let mut context = module.make_context();
    let mut builder = FunctionBuilderContext::new();
    for (number, (function, constants)) in functions.iter().enumerate() {
        let constants = Constants(constants.iter().map(|(row, _, value)| (*row, *value)).collect::<HashMap<_, _>>());
        let plan = Plan::new(function, &constants, native_fma);
        let mut of_memory = HashMap::new();
        for segment in &plan.segments {
            context.func.signature = segment_signature.clone();
            {
                let mut b = FunctionBuilder::new(&mut context.func, &mut builder);
                let call_signature = b.import_signature(call_signature.clone());
                let load_signature = b.import_signature(load_signature.clone());
                let learn_signature = b.import_signature(learn_signature.clone());
                let outside = Outside {
                    function,
                    plan: &plan,
                    constants: &constants,
                    call: runtime::call as *const () as usize,
                    load: runtime::load as *const () as usize,
                    learn: runtime::learn as *const () as usize,
                    sites: &mut sites,
                    of_memory: &mut of_memory,
                };
                Emitter::new(b, outside, [call_signature, load_signature, learn_signature]).segment(segment);
            }
            let name = format!("{number}.{}", segment.start);
            let id = module.declare_function(&name, Linkage::Local, &segment_signature).map_err(|e| failed(&e))?;
            module.define_function(id, &mut context).map_err(|e| failed(&format!("{e:?}")))?;
            module.clear_context(&mut context);
            ids.push((number, segment.start, segment.end, id));
        }
    }
    module.finalize_definitions().map_err(|e| failed(&e))?;
    let mut out: Vec<Segments> = functions.iter().map(|(f, _)| vec![None; f.code.len()]).collect();
    for (number, start, end, id) in ids {
        let code = module.get_finalized_function(id);
        // SAFETY: the function was compiled with the signature of `Code`.
        let code = unsafe { std::mem::transmute::<*const u8, Code>(code) };
        out[number][start] = Some(Segment { code, end: end as u32 });
    }
    Ok(Compiled { module: Some(module), sites, functions: out })
}

/// Whether the processor multiplies and adds in one step; without, the functions of [`super::alu`] are faster.
fn native_fma() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    true
}
