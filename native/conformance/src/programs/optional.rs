//! Outputs that CUDA lets a program leave out: every one that `native/api` declares `optional` is passed as NULL.

use super::{ADD, Program, load, start};
use crate::driver::Driver;
use sluice_api::driver::functions;
use sluice_api::{Direction, Function, Parameter};
use std::ffi::{CString, c_void};

pub(super) const PROGRAMS: &[Program] = &[("optional_outputs", optional_outputs)];

/// A call with more arguments than any function here has: the caller cleans up the rest.
type Call = unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, usize, usize) -> u32;

const SUCCESS: u32 = 0;
const INVALID_VALUE: u32 = 1;
/// Words of memory behind every output.
const ROOM: usize = 32;

/// The functions by which the objects are made that the calls name.
struct Maker<'a>(&'a Driver);

impl Maker<'_> {
    fn call(&self, symbol: &str, arguments: &[usize]) -> u32 {
        let found = self.0.library.symbol(symbol).unwrap_or_else(|error| panic!("{error}"));
        // SAFETY: integers and pointers travel alike in C, and superfluous ones are ignored.
        let call = unsafe { std::mem::transmute::<*mut c_void, Call>(found) };
        let mut slots = [0; 8];
        slots[..arguments.len()].copy_from_slice(arguments);
        let [a, b, c, d, e, f, g, h] = slots;
        // SAFETY: the caller's arguments fit the function.
        unsafe { call(a, b, c, d, e, f, g, h) }
    }

    /// Calls a function whose first parameter takes what it makes.
    fn make(&self, symbol: &str, arguments: &[usize]) -> usize {
        let mut made = 0usize;
        let all: Vec<usize> = std::iter::once((&raw mut made) as usize).chain(arguments.iter().copied()).collect();
        assert_eq!(self.call(symbol, &all), SUCCESS, "{symbol}");
        made
    }
}

struct Objects {
    context: usize,
    address: usize,
    module: usize,
    function: usize,
    /// A library and its kernel, where the driver has libraries.
    library: (usize, usize),
    graph: usize,
    /// The node before and behind an edge.
    nodes: [usize; 2],
    capturing: usize,
    image: CString,
    global: CString,
    symbol: CString,
}

impl Objects {
    fn make(driver: &Driver) -> Self {
        let maker = Maker(driver);
        let context = start(driver);
        let with_global =
            ADD.replace(".address_size 64\n", ".address_size 64\n.visible .global .align 4 .u32 total;\n");
        let image = CString::new(with_global).expect("text");
        let name = CString::new("add").expect("text");
        let module = maker.make("cuModuleLoadData", &[image.as_ptr() as usize]);
        let function = maker.make("cuModuleGetFunction", &[module, name.as_ptr() as usize]);
        let library = driver.has("cuLibraryLoadData").then(|| {
            let library = maker.make("cuLibraryLoadData", &[image.as_ptr() as usize]);
            (library, maker.make("cuLibraryGetKernel", &[library, name.as_ptr() as usize]))
        });
        let graph = maker.make("cuGraphCreate", &[0]);
        let first = maker.make("cuGraphAddEmptyNode", &[graph, 0, 0]);
        let second = maker.make("cuGraphAddEmptyNode", &[graph, (&raw const first) as usize, 1]);
        let capturing = maker.make("cuStreamCreate", &[1]);
        // CU_STREAM_CAPTURE_MODE_RELAXED: the other calls are none of the capture's.
        assert_eq!(maker.call("cuStreamBeginCapture_v2", &[capturing, 2]), SUCCESS);
        Self {
            context,
            address: maker.make("cuMemAlloc_v2", &[4096]),
            module,
            function,
            library: library.unwrap_or_default(),
            graph,
            nodes: [first, second],
            capturing,
            image,
            global: CString::new("total").expect("text"),
            symbol: CString::new("cuInit").expect("text"),
        }
    }

    /// An input, by the name that its declaration gives it.
    fn input(&self, driver: &Driver, function: &Function, parameter: &Parameter) -> usize {
        match parameter.name {
            "address" => self.address + 256,
            "module" => self.module,
            "function" => self.function,
            "library" => self.library.0,
            "kernel" => self.library.1,
            "graph" => self.graph,
            "node" => self.nodes[usize::from(!function.symbol.contains("DependentNodes"))],
            "stream" => self.capturing,
            "state" => self.link(driver),
            "name" => self.global.as_ptr() as usize,
            "symbol" => self.symbol.as_ptr() as usize,
            "version" => 12000,
            "log_bytes" => ROOM * 8,
            "index" | "flags" => 0,
            other => panic!("{}: nothing is made for `{other}`", function.symbol),
        }
    }

    /// A link with one piece of PTX.
    fn link(&self, driver: &Driver) -> usize {
        let maker = Maker(driver);
        let (text, mut state) = (self.image.as_bytes_with_nul(), 0usize);
        assert_eq!(maker.call("cuLinkCreate_v2", &[0, 0, 0, (&raw mut state) as usize]), SUCCESS);
        // CU_JIT_INPUT_PTX
        let data = [state, 1, text.as_ptr() as usize, text.len(), 0, 0, 0, 0];
        assert_eq!(maker.call("cuLinkAddData_v2", &data), SUCCESS);
        state
    }
}

/// NULL outputs that the documentation allows together: `cuda.h` of CUDA 13.5.
fn is_allowed(function: &Function, absent: &[&str]) -> bool {
    let without = |name: &str| absent.contains(&name);
    let has = |name: &str| function.parameters.iter().any(|parameter| parameter.name == name);
    let edges = if has("data") { "data" } else { "edges" };
    // "One of the parameters dptr or bytes (not both) can be NULL"
    let neither = function.symbol.contains("GetGlobal") && without("address") && without("bytes");
    // "from and to may both be NULL"
    let half = has("from") && without("from") != without("to");
    // "If edgeData is non-NULL then from and to must be as well", and so with every list of nodes.
    let no_nodes = ["from", "nodes", "dependencies"].iter().any(|name| has(name) && without(name));
    let edges_without_nodes = no_nodes && has(edges) && !without(edges);
    !(neither || half || edges_without_nodes)
}

fn optional_outputs(driver: &Driver) {
    let objects = Objects::make(driver);
    let mut tried = 0;
    for function in functions() {
        let optional: Vec<&str> = function
            .parameters
            .iter()
            .filter(|parameter| parameter.direction == Direction::OptionalOut)
            .map(|parameter| parameter.name)
            .collect();
        if optional.is_empty() || !driver.has(function.symbol) {
            continue;
        }
        let whole = answer(driver, &objects, function, &[]);
        for choice in 1..1usize << optional.len() {
            let absent: Vec<&str> =
                optional.iter().enumerate().filter(|(at, _)| choice >> at & 1 == 1).map(|(_, name)| *name).collect();
            if is_allowed(function, &absent) {
                // The other outputs are written as before.
                let written = answer(driver, &objects, function, &absent);
                for (name, was) in &whole {
                    let now = written.iter().find(|(other, _)| other == name);
                    assert!(
                        absent.contains(name) || now.is_some_and(|(_, now)| now == was),
                        "{} wrote another `{name}` without {absent:?}",
                        function.symbol
                    );
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 40, "{tried} calls");
    let (module, name) = (objects.module, objects.global.as_ptr() as usize);
    assert_eq!(Maker(driver).call("cuModuleGetGlobal_v2", &[0, 0, module, name]), INVALID_VALUE);
    // The calls left nothing broken.
    load(driver, "add");
}

/// Calls a function without some of its outputs: which of the others it wrote.
fn answer(
    driver: &Driver,
    objects: &Objects,
    function: &'static Function,
    absent: &[&str],
) -> Vec<(&'static str, bool)> {
    const BLANK: usize = 0x5a5a_5a5a_5a5a_5a5a;
    // SAFETY: a context of this process; `cuCtxPopCurrent` takes it away.
    assert_eq!(unsafe { (driver.cuCtxSetCurrent)(objects.context) }, SUCCESS);
    let mut rooms = vec![[BLANK; ROOM]; function.parameters.len()];
    let mut slots = Vec::new();
    for (parameter, room) in function.parameters.iter().zip(&mut rooms) {
        slots.push(match parameter.direction {
            Direction::In => objects.input(driver, function, parameter),
            _ if absent.contains(&parameter.name) => 0,
            Direction::InOut => {
                // Room for this number of entries.
                room[0] = 4;
                room.as_mut_ptr() as usize
            }
            Direction::Out | Direction::OptionalOut => room.as_mut_ptr() as usize,
        });
    }
    let code = Maker(driver).call(function.symbol, &slots);
    assert_eq!(code, SUCCESS, "{} without {absent:?}", function.symbol);
    let outputs = function.parameters.iter().zip(&rooms).filter(|(p, _)| p.direction == Direction::OptionalOut);
    outputs.map(|(parameter, room)| (parameter.name, room[0] != BLANK)).collect()
}
