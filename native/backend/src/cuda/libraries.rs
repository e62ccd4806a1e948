//! The host's own libraries beside the driver, loaded by their SONAMEs and called by their functions' names.

use super::turn::Work;
use super::{CudaDevice, Handle, Shareable, lock, unknown};
use crate::device::Done;
use crate::error::{CudaError, CudaResult, code};
use crate::graph::RecordingId;
use crate::types::{LibraryAnswer, LibraryCall, StreamId};
use sluice_api::libraries::{Kind, Library, Way, library, number_of};
use sluice_protocol::library::{Argument, HOST_RECORD, MOST_ARGUMENTS, take_arguments, take_calls, words};
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::sync::{Arc, Mutex};

/// CU_STREAM_CAPTURE_MODE_RELAXED: a library may allocate while its call is captured.
const RELAXED: u32 = 2;

/// Bytes of the longest structure that an object is; old releases of cuSPARSELt have those of 11,024.
const MOST_IN_PLACE: usize = 16 << 10;

/// A library's functions, and its objects by the numbers that the client gave them.
#[derive(Default)]
pub struct Libraries {
    opened: Mutex<HashMap<u32, Arc<Opened>>>,
    objects: Arc<Mutex<Objects>>,
    /// Captured calls: a `CUgraph` each.
    recordings: Mutex<HashMap<RecordingId, Shareable>>,
}

/// Objects by the client's numbers.
#[derive(Default)]
struct Objects {
    addresses: HashMap<u64, u64>,
    /// Drafts of which the library refused something while nobody waited: whoever waits for one gets this answer.
    refused: HashMap<u64, (u32, String)>,
    /// Host memory that they point to, or in which they lie.
    kept: HashMap<u64, Vec<Room>>,
}

impl Objects {
    /// The library's handle; 0 for a draft that it refused to make.
    fn handle(&self, number: u64) -> CudaResult<u64> {
        match self.addresses.get(&number) {
            Some(handle) => Ok(*handle),
            None if self.refused.contains_key(&number) => Ok(0),
            None => Err(CudaError::new(code::INVALID_HANDLE, "there is no such library object")),
        }
    }
}

struct Opened {
    functions: HashMap<u32, Function>,
    /// `void (char *text, size_t bytes)`: why the thread's last call failed.
    why: Option<Function>,
}

#[derive(Clone, Copy)]
struct Function(*mut c_void);

// SAFETY: code may be called from any thread, and libraries are never unloaded.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

fn find(number: u32) -> CudaResult<&'static Library> {
    library((number >> 16) as u16).ok_or_else(|| CudaError::new(code::NOT_SUPPORTED, "there is no such library"))
}

impl Opened {
    /// Loads the library under the name that the client uses, else under another of its names.
    fn load(number: u32) -> CudaResult<Opened> {
        let library = find(number)?;
        let wanted = format!(".so.{}", number & 0xffff);
        let mut names: Vec<&str> = library.source.shims.iter().map(|shim| shim.soname).collect();
        names.sort_by_key(|name| !name.ends_with(&wanted));
        let open = |name: &&str| {
            let text = CString::new(*name).ok()?;
            // SAFETY: a C string; loading a library of the CUDA toolkit runs its constructors, as for every program.
            let handle = unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            (!handle.is_null()).then_some(handle)
        };
        let handle = names.iter().find_map(open).ok_or_else(|| {
            let text = format!(
                "the GPU server has no {} ({}); its administrator installs it with the CUDA toolkit's libraries",
                library.source.title, names[0]
            );
            CudaError::new(code::NOT_SUPPORTED, text)
        })?;
        let functions = library.functions.iter().filter_map(|function| {
            let name = CString::new(function.symbol.as_str()).ok()?;
            // SAFETY: an open library and a C string.
            let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
            (!address.is_null()).then_some((function.number, Function(address)))
        });
        // SAFETY: an open library and a C string.
        let why = unsafe { libc::dlsym(handle, c"cudnnGetLastErrorString".as_ptr()) };
        Ok(Opened { functions: functions.collect(), why: (!why.is_null()).then_some(Function(why)) })
    }

    /// The library's words for the failure of this thread's last call; empty where it has none.
    fn reason(&self) -> String {
        let Some(why) = self.why else { return String::new() };
        let mut text = [0u8; 1024];
        let mut words = [0; MOST_ARGUMENTS];
        (words[0], words[1]) = (text.as_mut_ptr() as u64, text.len() as u64);
        // SAFETY: cudnnGetLastErrorString writes at most as many bytes as it is told.
        unsafe { invoke(why.0, &words, &[0; 8]) };
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        String::from_utf8_lossy(&text[..end]).into_owned()
    }
}

impl Libraries {
    fn opened(&self, number: u32) -> CudaResult<Arc<Opened>> {
        let mut opened = lock(&self.opened);
        if let Some(found) = opened.get(&number) {
            return Ok(Arc::clone(found));
        }
        let loaded = Arc::new(Opened::load(number)?);
        opened.insert(number, Arc::clone(&loaded));
        Ok(loaded)
    }

    /// The functions that the host's library does not have.
    pub fn missing(&self, number: u32) -> CudaResult<Vec<u32>> {
        let opened = self.opened(number)?;
        let executed =
            |function: &&sluice_api::libraries::Function| !matches!(function.way, Way::Get | Way::Local | Way::Refused);
        let absent = find(number)?.functions.iter().filter(executed).map(|function| function.number);
        Ok(absent.filter(|number| !opened.functions.contains_key(number)).collect())
    }
}

/// The object that an argument names.
fn subject(argument: &Argument) -> Option<u64> {
    match argument {
        Argument::New(number) | Argument::Object(number) | Argument::End(number) => Some(*number),
        _ => None,
    }
}

/// Memory for one pointer argument, aligned for every type.
type Room = Vec<u128>;

fn room(bytes: usize) -> Room {
    vec![0; bytes.div_ceil(16).max(1)]
}

/// A call with everything that it points to.
struct Prepared {
    library: Arc<Opened>,
    function: Function,
    name: &'static str,
    /// The first object that it names.
    subject: u64,
    /// A draft that it names was refused.
    refused: Option<(u32, String)>,
    /// It is about a draft: nothing runs on the device.
    drafting: bool,
    /// Its memory stays as long as its object.
    keeps: bool,
    /// The client made another object where this one lay; the library may have no function for that.
    forgets: bool,
    /// The calls of the group that this one closes, and the function that opens it.
    group: Vec<Prepared>,
    open: Option<Function>,
    words: [u64; MOST_ARGUMENTS],
    floats: [u64; 8],
    rooms: Vec<Room>,
    /// Outputs: room and bytes.
    outputs: Vec<(usize, usize)>,
    /// A new object: its number, its room and its size; none for one that lies there itself.
    made: Option<(u64, usize, Option<usize>)>,
    ended: Option<u64>,
}

impl Prepared {
    /// Calls the function.
    ///
    /// # Safety
    /// The context is current, and the arguments are what the function takes: the client's encoder made them from the
    /// same declaration. Device addresses are checked by the device.
    unsafe fn call(&self) -> u32 {
        if self.forgets {
            return 0;
        }
        // SAFETY: as the caller's; what opens a group takes nothing.
        unsafe {
            let opened = self.open.map_or(0, |open| invoke(open.0, &[0; MOST_ARGUMENTS], &[0; 8]) as u32);
            let calls = self.group.iter().map(|call| call.call());
            // All of them, so that what was opened is closed.
            let first = calls.fold(opened, |first, status| if first == 0 { status } else { first });
            let status = invoke(self.function.0, &self.words, &self.floats) as u32;
            if first == 0 { status } else { first }
        }
    }

    /// Notes what the call made, ended and keeps.
    fn settle(&mut self, objects: &mut Objects, status: u32) {
        self.group.iter_mut().for_each(|call| call.settle(objects, status));
        if status == 0
            && let Some((number, room, bytes)) = self.made
        {
            let handle = self.rooms[room][0] as u64;
            let handle = match bytes {
                None => {
                    let structure = std::mem::take(&mut self.rooms[room]);
                    let address = structure.as_ptr() as u64;
                    objects.kept.entry(number).or_default().push(structure);
                    address
                }
                Some(4) => handle & 0xffff_ffff,
                Some(_) => handle,
            };
            objects.addresses.insert(number, handle);
        }
        if let Some(number) = self.ended {
            objects.addresses.remove(&number);
            objects.refused.remove(&number);
            objects.kept.remove(&number);
        }
        if self.keeps {
            objects.kept.entry(self.subject).or_default().append(&mut self.rooms);
        }
    }

    fn outputs(&self) -> Vec<u8> {
        let bytes = |(room, bytes): &(usize, usize)| {
            let words = self.rooms[*room].iter().flat_map(|word| word.to_le_bytes());
            words.take(*bytes).collect::<Vec<u8>>()
        };
        self.outputs.iter().flat_map(bytes).collect()
    }
}

/// Calls a C function with any number of integers and up to eight floating-point numbers. On Linux (x86-64 and
/// AArch64) both kinds are passed in registers of their own, further integers in 8-byte slots on the stack, and a callee
/// does not see what it does not take: so one signature serves all.
///
/// # Safety
/// `function` is a C function whose parameters are these values.
unsafe fn invoke(function: *mut c_void, words: &[u64; MOST_ARGUMENTS], floats: &[u64; 8]) -> u64 {
    macro_rules! entry {
        (@ $word:tt $type:ty) => { $type };
        ($($word:tt)*) => {{
            // SAFETY: see above.
            let function = unsafe {
                std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn($(entry!(@ $word u64),)* f64, f64, f64, f64, f64, f64, f64, f64) -> u64,
                >(function)
            };
            let [a, b, c, d, e, f, g, h] = floats.map(f64::from_bits);
            // SAFETY: as the caller's.
            unsafe { function($(words[$word],)* a, b, c, d, e, f, g, h) }
        }};
    }
    entry!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39)
}

impl CudaDevice {
    fn prepare(&self, call: LibraryCall<'_>) -> CudaResult<Prepared> {
        let library = self.libraries.opened(call.library)?;
        let function = library.functions.get(&call.function).copied();
        let function = function.ok_or_else(|| CudaError::new(code::NOT_SUPPORTED, "the function is missing"))?;
        let declared = find(call.library)?;
        let small = declared.source.small_handles;
        let known = declared.numbered(call.function);
        let (way, parameters) = known.map_or((None, &[][..]), |known| (Some(known.way), &known.parameters));
        let arguments = take_arguments(call.arguments);
        let arguments = arguments.map_err(|error| CudaError::new(code::INVALID_VALUE, error.to_string()))?;
        let mut prepared = Prepared {
            library,
            function,
            name: known.map_or("", |known| &known.symbol),
            subject: arguments.iter().find_map(subject).unwrap_or(0),
            refused: None,
            drafting: matches!(way, Some(Way::Draft | Way::Write | Way::Finish | Way::Read | Way::Join)),
            keeps: false,
            forgets: way == Some(Way::Make) && matches!(arguments[..], [Argument::End(_)]),
            group: Vec::new(),
            open: None,
            words: [0; MOST_ARGUMENTS],
            floats: [0; 8],
            rooms: Vec::new(),
            outputs: Vec::new(),
            made: None,
            ended: None,
        };
        if let [Argument::Calls(calls)] = arguments.as_slice() {
            prepared.open = prepared.library.functions.get(&number_of("ncclGroupStart")).copied();
            let calls = take_calls(calls).map_err(|error| CudaError::new(code::INVALID_VALUE, error.to_string()))?;
            for (function, arguments) in calls {
                let one = self.prepare(LibraryCall { function, arguments, ..call })?;
                // Who waits for others does so outside the lease's turn.
                prepared.drafting |= one.drafting;
                prepared.group.push(one);
            }
            return Ok(prepared);
        }
        let objects = lock(&self.libraries.objects);
        let mut named = |number: u64| {
            if prepared.refused.is_none() {
                prepared.refused = objects.refused.get(&number).cloned();
            }
            objects.handle(number)
        };
        let (mut word, mut float) = (0, 0);
        for (at, argument) in arguments.iter().enumerate() {
            let kind = parameters.get(at).map(|parameter| &parameter.kind);
            let mut point = |data: &[u8], bytes: usize| {
                let mut memory = room(bytes);
                for (at, byte) in data.iter().enumerate() {
                    memory[at / 16] |= u128::from(*byte) << (at % 16 * 8);
                }
                let address = memory.as_ptr() as u64;
                prepared.rooms.push(memory);
                address
            };
            let value = match argument {
                Argument::Word(value) => *value,
                Argument::F32(bits) => {
                    prepared.floats[float] = u64::from(*bits);
                    float += 1;
                    continue;
                }
                Argument::F64(bits) => {
                    // Two floats fill one register on x86-64; on AArch64 each has its own.
                    if kind == Some(&Kind::Complex)
                        && cfg!(target_arch = "aarch64")
                        && float + 1 < prepared.floats.len()
                    {
                        prepared.floats[float] = bits & 0xffff_ffff;
                        float += 1;
                        prepared.floats[float] = bits >> 32;
                        float += 1;
                        continue;
                    }
                    prepared.floats[float] = *bits;
                    float += 1;
                    continue;
                }
                Argument::Stream(handle) => {
                    let stream = self.stream(StreamId::from_wire(*handle))? as u64;
                    if kind == Some(&Kind::Streams) { point(&stream.to_le_bytes(), 8) } else { stream }
                }
                Argument::Object(number) => named(*number)?,
                Argument::End(number) => {
                    prepared.ended = Some(*number);
                    objects.handle(*number)?
                }
                Argument::Objects(numbers) => {
                    let mut handles = Vec::with_capacity(numbers.len());
                    for number in words(numbers) {
                        let handle = if number == 0 { 0 } else { named(number)? };
                        handles.extend_from_slice(&handle.to_le_bytes());
                    }
                    point(&handles, handles.len())
                }
                Argument::Addresses(addresses, hosts) => {
                    let mut addresses = addresses.to_vec();
                    for record in hosts.as_chunks::<HOST_RECORD>().0 {
                        let (place, contents) = record.split_at(8);
                        let place = words(place).next().unwrap_or(0) as usize;
                        let address = point(contents, contents.len());
                        let entry = addresses.as_chunks_mut::<8>().0.get_mut(place);
                        let entry = entry.ok_or_else(|| CudaError::new(code::INVALID_VALUE, "no such address"))?;
                        *entry = address.to_le_bytes();
                        prepared.keeps = true;
                    }
                    point(&addresses, addresses.len())
                }
                Argument::New(number) => {
                    let in_place = declared.source.in_place;
                    let address = point(&[], if in_place { MOST_IN_PLACE } else { 8 });
                    let bytes = (!in_place).then_some(if small { 4 } else { 8 });
                    prepared.made = Some((*number, prepared.rooms.len() - 1, bytes));
                    address
                }
                Argument::In(data) => point(data, data.len()),
                Argument::Block(data) if cfg!(target_arch = "x86_64") => {
                    // Behind the six arguments in registers, whatever follows in them.
                    for (at, piece) in data.chunks(8).enumerate() {
                        let place = prepared.words.get_mut(6 + at);
                        let place = place.ok_or_else(|| CudaError::new(code::INVALID_VALUE, "too many arguments"))?;
                        let mut bytes = [0; 8];
                        bytes[..piece.len()].copy_from_slice(piece);
                        *place = u64::from_le_bytes(bytes);
                    }
                    continue;
                }
                Argument::Block(data) => point(data, data.len()),
                Argument::Calls(_) => return Err(CudaError::new(code::INVALID_VALUE, "a group among arguments")),
                Argument::Out(bytes) => {
                    let address = point(&[], *bytes as usize);
                    prepared.outputs.push((prepared.rooms.len() - 1, *bytes as usize));
                    address
                }
                Argument::InOut(data) => {
                    let address = point(data, data.len());
                    prepared.outputs.push((prepared.rooms.len() - 1, data.len()));
                    address
                }
            };
            prepared.words[word] = value;
            word += 1;
            if float == prepared.floats.len() {
                return Err(CudaError::new(code::INVALID_VALUE, "too many arguments"));
            }
        }
        Ok(prepared)
    }

    /// Calls the host's library: at once when the client does not wait, else on a thread that may wait.
    pub(super) fn run_library(&self, call: LibraryCall<'_>, done: Done<LibraryAnswer>) -> CudaResult<()> {
        self.shared.enter()?;
        let mut prepared = self.prepare(call)?;
        let waits = call.waits;
        let objects = Arc::clone(&self.libraries.objects);
        let (shared, turn) = (Arc::clone(&self.shared), Arc::clone(&self.turn));
        let stream = Shareable(self.stream(call.stream)?);
        let work = move || {
            let stream = stream;
            let mut run = || -> CudaResult<LibraryAnswer> {
                shared.enter()?;
                let (status, text) = match prepared.refused.take() {
                    Some(refused) => refused,
                    // What the library refused to make does not end either.
                    None if prepared.ended.is_some_and(|number| lock(&objects).handle(number) == Ok(0)) => {
                        (0, String::new())
                    }
                    None => {
                        // SAFETY: the context was just made current; see `Prepared::call`.
                        let call = || unsafe { prepared.call() };
                        let status = if prepared.drafting {
                            call()
                        } else {
                            turn.take(&shared, stream.0, Some(Work::Call(prepared.name)), || Ok(call()))?
                        };
                        (status, if status == 0 { String::new() } else { prepared.library.reason() })
                    }
                };
                let outputs = prepared.outputs();
                let mut objects = lock(&objects);
                prepared.settle(&mut objects, status);
                if status != 0 && prepared.drafting && !waits {
                    objects.refused.insert(prepared.subject, (status, text));
                    return Ok(LibraryAnswer::default());
                }
                Ok(LibraryAnswer { status, text, outputs })
            };
            let answer = run();
            if waits {
                // The call has waited for its stream.
                shared.hear();
            }
            done(answer);
        };
        if call.waits {
            self.waiters.run(Box::new(work));
        } else {
            work();
        }
        Ok(())
    }

    /// Has the driver capture the call: the library itself issues it into its stream, with all that its handle has been
    /// told, while that stream captures. What comes out is a graph, and becomes a child of those that the client makes.
    /// Nothing else is issued to the stream meanwhile, as one thread executes the client's frames.
    pub(super) fn keep_library(&self, recording: RecordingId, call: LibraryCall<'_>) -> CudaResult<LibraryAnswer> {
        let driver = self.shared.enter()?;
        let prepared = self.prepare(call)?;
        if let Some((status, text)) = prepared.refused {
            return Ok(LibraryAnswer { status, text, ..LibraryAnswer::default() });
        }
        let stream = self.stream(call.stream)?;
        if stream.is_null() {
            return Err(CudaError::new(code::STREAM_CAPTURE_UNSUPPORTED, "the legacy stream cannot capture"));
        }
        // The thread behind the turn marks streams when it likes: a mark must not fall into the capture.
        self.turn.retire(&self.shared, stream);
        // SAFETY: a stream of this context that does not capture.
        self.shared.check(unsafe { (driver.stream_begin_capture)(stream, RELAXED) })?;
        // SAFETY: the context is current; see `Prepared::call`. Nothing runs before the graph does.
        let status = unsafe { prepared.call() };
        let mut graph = std::ptr::null_mut();
        // SAFETY: the stream that captures; the driver writes one handle, null when the capture was invalidated.
        let ended = self.shared.check(unsafe { (driver.stream_end_capture)(stream, &mut graph) });
        if status == 0 && ended.is_ok() {
            lock(&self.libraries.recordings).insert(recording, Shareable(graph));
            return Ok(LibraryAnswer::default());
        }
        if !graph.is_null() {
            // SAFETY: a graph that nobody else has.
            unsafe { (driver.graph_destroy)(graph) };
        }
        ended?;
        Ok(LibraryAnswer { status, text: prepared.library.reason(), ..LibraryAnswer::default() })
    }

    /// Forgets a recording; graphs hold copies of it.
    pub(super) fn drop_library(&self, recording: RecordingId) -> CudaResult<()> {
        let graph = lock(&self.libraries.recordings).remove(&recording).ok_or_else(|| unknown("recorded call"))?;
        let driver = self.shared.enter()?;
        // SAFETY: a graph that this code made and nobody else destroys.
        self.shared.check(unsafe { (driver.graph_destroy)(graph.0) })
    }

    /// The graph of a recorded call.
    pub(super) fn recorded(&self, recording: RecordingId) -> CudaResult<Handle> {
        let recordings = lock(&self.libraries.recordings);
        recordings.get(&recording).map(|graph| graph.0).ok_or_else(|| unknown("recorded call"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn mixed(a: i32, b: f32, c: u64, d: f64, e: i32, f: i32, g: i32, h: i64, i: *const i32) -> i32 {
        // SAFETY: the test passes a live int.
        let last = unsafe { *i };
        assert_eq!((a, b, c, d, e, f, g, h, last), (-1, 1.5, u64::MAX, 2.5, 4, 5, 6, -7, 8));
        -9
    }

    #[test]
    fn a_function_gets_integers_and_floating_point_numbers_where_it_looks_for_them() {
        let last = 8i32;
        let mut words = [0; MOST_ARGUMENTS];
        let given = [-1i64 as u64, u64::MAX, 4, 5, 6, -7i64 as u64, &raw const last as u64];
        words[..given.len()].copy_from_slice(&given);
        let mut floats = [0; 8];
        floats[0] = u64::from(1.5f32.to_bits());
        floats[1] = 2.5f64.to_bits();
        // SAFETY: these are the values that `mixed` takes.
        let answer = unsafe { invoke(mixed as *mut c_void, &words, &floats) };
        assert_eq!(answer as i32, -9);
    }
}
