//! The libraries of one session and their objects.

use crate::arguments::{Call, Outputs};
use crate::description::Description;
use crate::fft::Plan;
use crate::memory::{Fault, Memory};
use crate::rand::Generator;
use crate::{Problem, Refused, blas, invalid, lt, solver, sparse, unsupported};
use sluice_api::libraries::{Function, Kind, Library, Way, library};
use sluice_protocol::library::{Argument, take_arguments};
use std::collections::HashMap;

/// What is to be done for a call.
pub enum Step {
    /// Nothing more: these are its outputs.
    Done(Vec<u8>),
    /// Work in stream order; the host does not wait for it.
    Queue(Work),
    /// Work in stream order whose outputs the host waits for.
    Wait(Work),
}

/// Work on the device's memory; answers the outputs for the host.
pub type Work = Box<dyn FnOnce(&dyn Memory) -> Result<Vec<u8>, Fault> + Send>;

/// Work before its outputs are joined.
pub(crate) type Job = Box<dyn FnOnce(&dyn Memory, &mut Outputs) -> Result<(), Fault> + Send>;

/// Makes a job of a closure.
pub(crate) fn job(
    body: impl FnOnce(&dyn Memory, &mut Outputs) -> Result<(), Fault> + Send + 'static,
) -> Result<Job, Problem> {
    Ok(Box::new(body))
}

/// A function without memory of its own.
pub(crate) type Handler = fn(&Call) -> Result<Job, Problem>;

/// See the module.
#[derive(Clone, Default)]
pub struct Libraries {
    objects: HashMap<u64, Object>,
    descriptions: Descriptions,
}

/// An object that a client made.
#[derive(Clone)]
pub(crate) enum Object {
    /// A handle without state.
    Handle,
    /// A cuFFT plan, described or not yet.
    Plan(Option<Plan>),
    Generator(Generator),
    /// A sparse matrix or what belongs to one.
    Described(Description),
}

/// What descriptors say, by their numbers.
#[derive(Clone, Default)]
pub(crate) struct Descriptions(HashMap<u64, Description>);

impl Descriptions {
    /// The description that an argument names.
    pub fn get(&self, call: &Call, name: &str) -> Result<&Description, Problem> {
        self.0.get(&call.object(name)?).ok_or_else(|| invalid(format!("{name} names no description")))
    }
}

/// A call that can be made again and again, each time with what its objects said when it was recorded.
pub struct Recorded {
    library: u32,
    function: u32,
    arguments: Vec<u8>,
    /// The objects and descriptions that it names.
    world: Libraries,
}

impl Recorded {
    /// What is to be done for one run of the call.
    pub fn step(&self) -> Result<Step, Refused> {
        self.world.clone().prepare(self.library, self.function, &self.arguments)
    }

    /// The function's name.
    pub fn name(&self) -> &'static str {
        library((self.library >> 16) as u16)
            .and_then(|library| library.numbered(self.function))
            .map_or("", |function| function.symbol.as_str())
    }
}

impl Libraries {
    /// Checks a call and keeps it to be made later. What the call does to its objects besides (a generator's place in
    /// its sequence) has happened when this returns; a call that has outputs for the host is refused.
    pub fn record(&mut self, number: u32, function: u32, arguments: &[u8]) -> Result<Recorded, Refused> {
        let mut world = Libraries::default();
        for argument in take_arguments(arguments).unwrap_or_default() {
            let Argument::Object(named) = argument else { continue };
            if let Some(object) = self.objects.get(&named) {
                world.objects.insert(named, object.clone());
            }
            if let Some(description) = self.descriptions.0.get(&named) {
                world.descriptions.0.insert(named, description.clone());
            }
        }
        if matches!(self.prepare(number, function, arguments)?, Step::Wait(_)) {
            let failed = library((number >> 16) as u16).map_or(1, |library| library.source.status.execution_failed);
            let text = "the host waits for this call's result, which a graph does not have".to_owned();
            return Err(Refused { status: failed, text });
        }
        Ok(Recorded { library: number, function, arguments: arguments.to_vec(), world })
    }

    /// The functions of a library that are not served; none if there is no such library here.
    pub fn refused(number: u32) -> Option<Vec<u32>> {
        let library = library((number >> 16) as u16).filter(|library| serves(library.source.name))?;
        let missing = |function: &&Function| {
            let local = matches!(function.way, Way::Get | Way::Local | Way::Refused);
            !local && !is_served(library.source.name, function)
        };
        Some(library.functions.iter().filter(missing).map(|function| function.number).collect())
    }

    /// Checks a call; see [`Step`].
    pub fn prepare(&mut self, number: u32, function: u32, arguments: &[u8]) -> Result<Step, Refused> {
        let unknown = || Refused { status: 1, text: "there is no such function".to_owned() };
        let library = library((number >> 16) as u16).ok_or_else(unknown)?;
        let function = library.numbered(function).ok_or_else(unknown)?;
        let status = library.source.status;
        let arguments = take_arguments(arguments)
            .map_err(|error| Refused { status: status.invalid_value, text: error.to_string() })?;
        let call = Call { function, arguments };
        call.check().and_then(|()| self.step(library, &call)).map_err(|problem| problem.in_words_of(status))
    }

    fn step(&mut self, library: &Library, call: &Call) -> Result<Step, Problem> {
        for (parameter, argument) in call.function.parameters.iter().zip(&call.arguments) {
            if let Argument::Object(number) = argument
                && parameter.kind == Kind::Object
                && !self.objects.contains_key(number)
            {
                return Err(invalid(format!("{} names no object", parameter.name)));
            }
        }
        let nothing = || Ok(Step::Done(call.outputs().joined()));
        let number = call.arguments.iter().find_map(|argument| match argument {
            Argument::New(number) | Argument::Object(number) | Argument::End(number) => Some(*number),
            _ => None,
        });
        let number = number.unwrap_or(0);
        match call.function.way {
            Way::End | Way::Drop => {
                let gone = self.objects.remove(&number).is_some() || self.descriptions.0.remove(&number).is_some();
                return if gone { nothing() } else { Err(invalid("there is no such object")) };
            }
            Way::Describe => {
                self.descriptions.0.insert(number, Description::of(call));
                return nothing();
            }
            Way::Change => {
                let description = self.descriptions.0.get_mut(&number);
                description.ok_or_else(|| invalid("there is no such description"))?.change(call)?;
                return nothing();
            }
            _ => {}
        }
        match (library.source.name, call.function.way) {
            ("cublas" | "cublaslt" | "cudnn" | "cusolver", Way::Make) => self.put(number, Object::Handle),
            // The stream comes with every call; modes, workspaces and an iteration's limits change nothing here.
            ("cublas" | "cudnn" | "cusolver", Way::Set) => {}
            ("cusolver", _) => return solver::prepare(call),
            ("cusparse", Way::Make) => self.put(number, Object::Described(sparse::made(call))),
            ("cusparse", Way::Set) => {
                if let Some(Object::Described(description)) = self.objects.get_mut(&number) {
                    description.set(call)?;
                }
            }
            ("cusparse", _) => {
                return sparse::prepare(call, &|name| match self.objects.get(&call.object(name)?) {
                    Some(Object::Described(description)) => Ok(description),
                    _ => Err(invalid(format!("{name} names no matrix or vector"))),
                });
            }
            ("cublas", _) => {
                let handler = blas::find(&call.function.symbol).ok_or_else(|| unsupported(&call.function.symbol))?;
                return Ok(scheduled(call, handler(call)?));
            }
            ("cublaslt", _) => return lt::prepare(call, &self.descriptions),
            ("cufft", Way::Make) => {
                let plan = if call.function.symbol == "cufftCreate" { None } else { Some(Plan::of(call)?) };
                self.put(number, Object::Plan(plan));
            }
            ("cufft", Way::Set) => {
                // Stream, work area and its allocation change nothing here: no work area is needed.
                if call.function.symbol.contains("MakePlan") {
                    self.put(number, Object::Plan(Some(Plan::of(call)?)));
                }
            }
            ("cufft", Way::Ask) => drop(Plan::of(call)?),
            ("cufft", _) => {
                if !call.function.symbol.contains("GetSize") {
                    let Some(Object::Plan(Some(plan))) = self.objects.get(&number) else {
                        return Err(invalid("the plan was not made"));
                    };
                    return Ok(scheduled(call, plan.run(call)?));
                }
            }
            ("curand", Way::Make) => self.put(number, Object::Generator(Generator::of(call.int("type")?)?)),
            ("curand", way) => {
                let Some(Object::Generator(generator)) = self.objects.get_mut(&number) else {
                    return Err(invalid("this is no generator"));
                };
                if way != Way::Set {
                    return Ok(scheduled(call, generator.generate(call)?));
                }
                generator.set(call)?;
            }
            _ => return Err(unsupported(library.source.title)),
        }
        nothing()
    }

    fn put(&mut self, number: u64, object: Object) {
        self.objects.insert(number, object);
    }
}

/// A job with room for its outputs, waited for when there are any.
pub(crate) fn scheduled(call: &Call, job: Job) -> Step {
    let mut outputs = call.outputs();
    let waits = !outputs.0.is_empty();
    let work: Work = Box::new(move |memory| {
        job(memory, &mut outputs)?;
        Ok(outputs.joined())
    });
    if waits { Step::Wait(work) } else { Step::Queue(work) }
}

fn serves(library: &str) -> bool {
    matches!(library, "cublas" | "cublaslt" | "cufft" | "curand" | "cusolver" | "cusparse" | "cudnn")
}

fn is_served(library: &str, function: &Function) -> bool {
    match (library, function.way) {
        ("cublas", Way::Run) => blas::find(&function.symbol).is_some(),
        ("cublaslt", _) => lt::serves(&function.symbol),
        // Frameworks make a handle at every start; what it is for is refused.
        ("cudnn", _) => matches!(function.symbol.as_str(), "cudnnCreate" | "cudnnDestroy" | "cudnnSetStream"),
        ("cusolver", Way::Run | Way::Ask) => solver::serves(&function.symbol),
        ("cusolver", Way::Make) => !function.symbol.starts_with("cusolverSp"),
        ("cusparse", Way::Run | Way::Ask) => sparse::serves(&function.symbol),
        // What factorisations and the like keep between their steps.
        ("cusparse", Way::Make) => !function.symbol.ends_with("Info") && !function.symbol.ends_with("_createDescr"),
        _ => true,
    }
}
