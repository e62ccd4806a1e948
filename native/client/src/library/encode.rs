//! From a caller's slots to the arguments of a message.

use super::object::{HostNumber, Object};
use super::remote::Operands;
use super::value::Contents;
use super::{Loaded, Outcome, Refusal};
use crate::device::Device;
use crate::driver::stream;
use crate::process::Process;
use crate::session::Session;
use sluice_api::libraries::{Attribute, Element, Factor, Function, Kind, Length, Way, data_bytes, nccl_bytes};
use sluice_protocol::Wire;
use sluice_protocol::library::{Argument, HOST_BYTES, HOST_RECORD, MOST_OUTPUT, words};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// Of cudnnDataType_t: the one whose scalars are in double precision.
const CUDNN_DATA_DOUBLE: u32 = 1;

/// Where an ncclConfig_t says whether calls wait, and where it holds pointers to the names of a network and of the
/// communicator. At the server calls wait, as the client does for them.
const NCCL_CONFIG_BLOCKING: usize = 16;
const NCCL_CONFIG_NAMES: [usize; 2] = [32, 48];

/// Objects that work, as parameters name them. What has been said of others (of a tensor, a convolution, a sparse matrix)
/// decides whether a call is accepted.
const WORKERS: [&str; 4] = ["handle", "generator", "comm", "plan"];

/// An encoded call.
#[derive(Default)]
pub(super) struct Encoded {
    pub arguments: Vec<u8>,
    /// Where outputs go: address and bytes, in order.
    pub outputs: Vec<(usize, usize)>,
    /// Hash of function and choices, and one of the choices in each description.
    pub choices: u64,
    pub descriptions: Vec<u64>,
    /// Where the arguments name each of them by its number at the server.
    described_at: Vec<Range<usize>>,
    /// Hash of what the call says of its object: all but where anything lies.
    pub says: u64,
    /// Hash of what has been said of the objects that it names and that do not work themselves.
    pub said: u64,
    /// Of a call whose descriptions say what is to be done.
    pub operands: Operands,
    /// The server's stream: of the call's own argument, else of its object.
    pub stream: u64,
    /// The first object that the call names.
    pub object: Option<Arc<Object>>,
    pub number: u64,
    /// A new object: where its number goes.
    pub made: Option<usize>,
    pub addresses: Vec<u64>,
    pub named_stream: Option<usize>,
    /// The other objects that it names.
    pub references: Vec<Arc<Object>>,
    /// Objects that the answer fills.
    pub filled: Vec<Arc<Object>>,
    /// Numbers in host memory that it passes on.
    pub hosts: Vec<HostNumber>,
    /// The value of the parameter `attribute`.
    pub attribute: u64,
}

impl Encoded {
    /// What a question depends on: its arguments, of each description what it chooses, and what has been said of the
    /// objects that it names. Where a description's addresses lie is no part of it: PyTorch casts a layer's bias to
    /// another place at every step.
    pub fn question(&self) -> Vec<u8> {
        let mut question = self.said.to_le_bytes().to_vec();
        let mut from = 0;
        for (place, chosen) in self.described_at.iter().zip(&self.descriptions) {
            question.extend_from_slice(&self.arguments[from..place.start]);
            question.extend_from_slice(&chosen.to_le_bytes());
            from = place.end;
        }
        question.extend_from_slice(&self.arguments[from..]);
        question
    }
}

/// The surroundings of a call.
pub(super) struct Encoder<'a> {
    pub process: &'static Process,
    /// Where the call goes, when it is sent now.
    pub to: Option<(Device, &'a Session)>,
    pub loaded: Loaded,
    pub function: &'static Function,
    pub slots: &'a [usize],
    /// The number for a new object.
    pub fresh: u64,
}

impl Encoder<'_> {
    fn invalid(&self, what: &str) -> Refusal {
        Refusal::new(self.loaded.status().invalid_value, format!("{what} is not valid"))
    }

    /// The value of a number parameter, sign-extended.
    fn number(&self, at: usize) -> i64 {
        let slot = self.slots[at];
        match self.function.parameters[at].kind {
            Kind::I32 | Kind::Dim => i64::from(slot as i32),
            Kind::U32 | Kind::Enum => i64::from(slot as u32),
            _ => slot as i64,
        }
    }

    fn length(&self, length: &Length) -> Outcome<usize> {
        let mut bytes = i64::from(length.bytes);
        for factor in &length.times {
            let factor = match *factor {
                Factor::Value(at) => self.number(at),
                Factor::Batch(at) => match self.object(self.slots[at])?.second_dimension.load(Ordering::Relaxed) {
                    0 => return Err(self.invalid(&self.function.parameters[at].name)),
                    batch => i64::from(batch as i32),
                },
                // SAFETY: slots are what the declaration says.
                Factor::Sum(at) => unsafe { self.sum(at)? },
            };
            bytes = bytes.saturating_mul(factor);
        }
        match usize::try_from(bytes) {
            Ok(bytes) if bytes as u64 <= MOST_OUTPUT => Ok(bytes),
            _ => Err(self.invalid("a length")),
        }
    }

    /// The sum of a host array of 32-bit numbers, none of which is negative; 0 of no array.
    ///
    /// # Safety
    /// The slot is what the declaration says.
    unsafe fn sum(&self, at: usize) -> Outcome<i64> {
        let (slot, parameter) = (self.slots[at], &self.function.parameters[at]);
        let Kind::In(length) = &parameter.kind else { return Err(self.invalid(&parameter.name)) };
        if slot == 0 {
            return Ok(0);
        }
        // SAFETY: the caller's array, as long as the declaration says.
        let numbers = unsafe { std::slice::from_raw_parts(slot as *const u8, self.length(length)?) };
        let numbers =
            numbers.as_chunks().0.iter().map(|number| u32::try_from(i32::from_le_bytes(*number)).map(i64::from));
        numbers.sum::<Result<_, _>>().map_err(|_| self.invalid(&parameter.name))
    }

    /// Where a scalar lies (true: in device memory) and its bytes.
    fn scalar(&self, at: usize, element: Element, object: Option<&Arc<Object>>) -> Outcome<(bool, usize)> {
        let on_device = object.is_some_and(|object| object.pointer_mode.load(Ordering::Relaxed) != 0);
        let bytes = match element {
            Element::Fixed(bytes) => bytes,
            Element::Anywhere(bytes) => return Ok((self.is_of_a_device(self.slots[at] as u64), bytes as usize)),
            Element::Data(at) => data_bytes(self.slots[at] as u32),
            Element::Compute(at) => {
                let real = match self.slots[at] as u32 {
                    64 | 65 => 2,
                    70 | 71 => 8,
                    _ => 4,
                };
                if self.complex_data() { 2 * real } else { real }
            }
            Element::Reduced(at) => {
                return Ok((self.slots[at + 1] as u32 == 0, nccl_bytes(self.slots[at] as u32) as usize));
            }
            Element::Tensor(at) => {
                let kind = match self.function.parameters[at].kind {
                    Kind::Enum => self.slots[at] as u32,
                    _ => self.object(self.slots[at])?.data_type.load(Ordering::Relaxed),
                };
                if kind == CUDNN_DATA_DOUBLE { 8 } else { 4 }
            }
            Element::Scale(at) => {
                let value = self.process.objects.libraries.values.get(self.slots[at]);
                let value = value.map_err(|_| self.invalid("a description"))?;
                let value = value.lock().unwrap_or_else(PoisonError::into_inner);
                // Attributes of a transform description, else of a matmul description.
                let (scale_type, pointer_mode) = if value.end.contains("Transform") { (0, 1) } else { (1, 2) };
                let scale = value.numbers.get(&scale_type).map(|scale| *scale as u32);
                let scale = scale.or(value.choices.last().copied()).unwrap_or(0);
                let mode = value.numbers.get(&pointer_mode).copied().unwrap_or(0);
                let device = match mode {
                    0 => false,
                    4 => self.function.parameters[at].name != "beta",
                    _ => true,
                };
                return Ok((device, data_bytes(scale) as usize));
            }
        };
        if bytes == 0 { Err(self.invalid("a data type")) } else { Ok((on_device, bytes as usize)) }
    }

    /// Whether the call's result (`ctype`) is complex.
    fn complex_data(&self) -> bool {
        let at = self.function.parameters.iter().position(|p| p.name == "ctype");
        at.is_some_and(|at| matches!(self.slots[at] as u32, 4 | 5 | 6 | 7 | 15))
    }

    /// Encodes all parameters.
    ///
    /// # Safety
    /// Slots are what the declaration says.
    pub unsafe fn encode(&self) -> Outcome<Encoded> {
        // SAFETY: as the caller's.
        unsafe { self.encode_from(0) }
    }

    /// As [`Encoder::encode`], without the first parameter: the description that is made or changed.
    ///
    /// # Safety
    /// As [`Encoder::encode`].
    pub unsafe fn encode_after_first(&self) -> Outcome<Encoded> {
        // SAFETY: as the caller's.
        unsafe { self.encode_from(1) }
    }

    unsafe fn encode_from(&self, first: usize) -> Outcome<Encoded> {
        let mut out = Encoded::default();
        let (mut choices, mut says, mut said) = (DefaultHasher::new(), DefaultHasher::new(), DefaultHasher::new());
        (self.loaded.id, self.function.number).hash(&mut choices);
        // Where descriptions say what is to be done, they and the algorithm decide whether it is accepted.
        let described = self.function.parameters.iter().any(|parameter| parameter.kind == Kind::Value);
        let mut devices = 0;
        for (at, parameter) in self.function.parameters.iter().enumerate().skip(first) {
            let slot = self.slots[at];
            self.choose(at, described, &mut choices);
            self.say(at, &mut says);
            let bytes = &mut out.arguments;
            // SAFETY (all reads below): the caller's pointers, as long as the declaration says.
            let read = |length: usize| unsafe { std::slice::from_raw_parts(slot as *const u8, length) };
            match &parameter.kind {
                Kind::New => {
                    if slot == 0 {
                        return Err(self.invalid(&parameter.name));
                    }
                    out.made = Some(slot);
                    Argument::New(self.fresh).put(bytes);
                }
                Kind::Optional if slot == 0 => Argument::Word(0).put(bytes),
                Kind::End | Kind::Object | Kind::Subject | Kind::Optional | Kind::Which => {
                    let object = self.object(slot)?;
                    let number = object.number;
                    if !WORKERS.contains(&parameter.name.as_str()) {
                        object.said().hash(&mut said);
                        // The first is the one of which it says something.
                        if out.object.is_some() {
                            object.said().hash(&mut says);
                        }
                    }
                    if parameter.kind == Kind::End {
                        Argument::End(number).put(bytes);
                    } else {
                        self.ensure(&object)?;
                        Argument::Object(number).put(bytes);
                    }
                    if out.stream == 0 {
                        out.stream = object.stream.load(Ordering::Relaxed);
                    }
                    if out.object.is_none() || parameter.kind == Kind::Subject {
                        out.number = number;
                        out.references.extend(out.object.replace(object));
                    } else {
                        out.references.push(object);
                    }
                }
                Kind::Value if slot == 0 => {
                    out.descriptions.push(0);
                    let place = bytes.len();
                    Argument::Word(0).put(bytes);
                    out.described_at.push(place..bytes.len());
                }
                Kind::Value => {
                    let value = self.process.objects.libraries.values.get(slot);
                    let value = value.map_err(|_| self.invalid(&parameter.name))?;
                    let contents = value.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    out.descriptions.push(self.choices_of(&contents));
                    let (_, session) = self.to.ok_or_else(|| self.invalid("a description in a description"))?;
                    let number = session.libraries.description(session, self.loaded, &contents)?;
                    let place = bytes.len();
                    Argument::Object(number).put(bytes);
                    out.described_at.push(place..bytes.len());
                }
                Kind::Streams if slot == 0 => Argument::Word(0).put(bytes),
                Kind::Stream | Kind::Streams => {
                    let stream = match parameter.kind {
                        Kind::Streams if self.number(at + 1) != 1 => {
                            let text = "work of one call in several streams is not served";
                            return Err(Refusal::new(self.loaded.status().not_supported, text));
                        }
                        // The caller's array of one.
                        Kind::Streams => words(read(8)).next().unwrap_or(0) as usize,
                        _ => slot,
                    };
                    out.named_stream = Some(stream);
                    let handle = match self.to {
                        Some((device, session)) => stream::at_server(device, session, stream)
                            .map_err(|error| Refusal::from_cuda(self.loaded.status(), error))?,
                        None => 0,
                    };
                    out.stream = handle;
                    Argument::Stream(handle).put(bytes);
                }
                Kind::Device => {
                    if slot != 0 {
                        self.check_address(slot as u64)?;
                        out.addresses.push(slot as u64);
                    }
                    if described {
                        out.operands.alignments[devices] = Operands::alignment(slot as u64);
                        devices += 1;
                    }
                    Argument::Word(slot as u64).put(bytes);
                }
                Kind::I32 | Kind::Dim | Kind::U32 | Kind::Enum | Kind::I64 | Kind::U64 | Kind::Dim64 => {
                    let number = self.number(at);
                    if matches!(parameter.kind, Kind::Dim | Kind::Dim64) && number < 0 {
                        return Err(self.invalid(&parameter.name));
                    }
                    if parameter.kind == Kind::Enum && parameter.name == "attribute" {
                        out.attribute = number as u64;
                    }
                    if described && parameter.name == "workspace_bytes" {
                        out.operands.workspace = number as u64;
                    }
                    Argument::Word(number as u64).put(bytes);
                }
                Kind::F32 => Argument::F32(slot as u32).put(bytes),
                Kind::F64 | Kind::Complex => Argument::F64(slot as u64).put(bytes),
                Kind::Scalar(_) if slot == 0 => Argument::Word(0).put(bytes),
                Kind::Result(_) | Kind::Both(_) if slot == 0 => return Err(self.invalid(&parameter.name)),
                Kind::Scalar(element) => match self.scalar(at, *element, out.object.as_ref())? {
                    (true, _) => Argument::Word(slot as u64).put(bytes),
                    (false, length) => Argument::In(read(length)).put(bytes),
                },
                Kind::Result(element) => match self.scalar(at, *element, out.object.as_ref())? {
                    (true, _) => Argument::Word(slot as u64).put(bytes),
                    (false, length) => {
                        Argument::Out(length as u32).put(bytes);
                        out.outputs.push((slot, length));
                    }
                },
                Kind::Both(element) => match self.scalar(at, *element, out.object.as_ref())? {
                    (true, _) => Argument::Word(slot as u64).put(bytes),
                    (false, length) => {
                        Argument::InOut(read(length)).put(bytes);
                        out.outputs.push((slot, length));
                    }
                },
                Kind::In(_) | Kind::Out(_) | Kind::InOut(_) if slot == 0 => Argument::Word(0).put(bytes),
                Kind::In(length) => {
                    let data = read(self.length(length)?);
                    data.hash(&mut says);
                    if described {
                        data.hash(&mut choices);
                    }
                    Argument::In(data).put(bytes);
                }
                Kind::Out(length) => {
                    let length = self.length(length)?;
                    Argument::Out(length as u32).put(bytes);
                    out.outputs.push((slot, length));
                }
                Kind::InOut(length) => {
                    let length = self.length(length)?;
                    Argument::InOut(read(length)).put(bytes);
                    out.outputs.push((slot, length));
                }
                Kind::Elements { .. } | Kind::Into { .. } if slot == 0 => Argument::Word(0).put(bytes),
                Kind::Elements { of, count } | Kind::Into { of, count } => {
                    let read_only = matches!(parameter.kind, Kind::Elements { .. });
                    let attribute = Attribute::of(self.slots[*of] as u32).ok_or_else(|| {
                        let text = format!("attributes of type {} are not known", self.slots[*of]);
                        Refusal::new(self.loaded.status().not_supported, text)
                    })?;
                    let length =
                        self.length(&Length { bytes: attribute.bytes() as u32, times: vec![Factor::Value(*count)] })?;
                    self.elements(&mut out, attribute, read(length), slot, read_only)?;
                }
                Kind::Config if slot == 0 => Argument::Word(0).put(bytes),
                Kind::Config => {
                    let size = usize::from_le_bytes(*read(8).first_chunk().unwrap_or(&[0; 8]));
                    if !(NCCL_CONFIG_BLOCKING + 4..=4096).contains(&size) {
                        return Err(self.invalid(&parameter.name));
                    }
                    let mut config = read(size).to_vec();
                    config[NCCL_CONFIG_BLOCKING..][..4].copy_from_slice(&1u32.to_le_bytes());
                    // Older ones are shorter.
                    for name in NCCL_CONFIG_NAMES {
                        config.get_mut(name..name + 8).into_iter().for_each(|pointer| pointer.fill(0));
                    }
                    Argument::In(&config).put(bytes);
                }
                Kind::Block(length) => Argument::Block(read(*length as usize)).put(bytes),
                Kind::Any => {}
            }
        }
        out.descriptions.hash(&mut choices);
        out.descriptions.iter().for_each(|description| description.hash(&mut says));
        (out.says, out.said) = (says.finish(), said.finish());
        // A proposal of cuBLASLt's is hashed alike (`accept_proposals`), and names none of them.
        if out.said != DefaultHasher::new().finish() {
            out.said.hash(&mut choices);
        }
        out.choices = choices.finish();
        Ok(out)
    }

    /// Encodes an array of attributes that lies at `slot`.
    fn elements(
        &self,
        out: &mut Encoded,
        attribute: Attribute,
        data: &[u8],
        slot: usize,
        read_only: bool,
    ) -> Outcome<()> {
        match (attribute, read_only) {
            (Attribute::Handle, false) => {
                let text = "what a descriptor holds of handles is not told";
                return Err(Refusal::new(self.loaded.status().not_supported, text));
            }
            (Attribute::Handle, true) | (Attribute::Descriptor, _) => {
                for number in words(data).filter(|number| *number != 0) {
                    let object = self.object(number as usize)?;
                    self.ensure(&object)?;
                    if read_only { &mut out.references } else { &mut out.filled }.push(object);
                }
                Argument::Objects(data).put(&mut out.arguments);
            }
            (Attribute::Address, true) => {
                let (mut records, mut hosts) = (Vec::new(), Vec::new());
                for (place, address) in words(data).enumerate().filter(|(_, address)| *address != 0) {
                    self.check_address(address)?;
                    if self.is_of_a_device(address) {
                        continue;
                    }
                    // The contents are taken when the array is sent.
                    (place as u64).put(&mut records);
                    hosts.push((address, records.len()));
                    records.extend_from_slice(&[0; HOST_BYTES]);
                }
                debug_assert_eq!(records.len(), hosts.len() * HOST_RECORD);
                Argument::Addresses(data, &records).put(&mut out.arguments);
                let start = out.arguments.len() - records.len();
                out.hosts.extend(hosts.into_iter().map(|(address, at)| HostNumber { address, place: start + at }));
            }
            (Attribute::Bytes(_), true) => Argument::In(data).put(&mut out.arguments),
            // What the library leaves as it is comes back as it was.
            (Attribute::Bytes(_) | Attribute::Address, false) => {
                Argument::InOut(data).put(&mut out.arguments);
                out.outputs.push((slot, data.len()));
            }
        }
        Ok(())
    }

    /// Whether an address is of one of the process's devices.
    fn is_of_a_device(&self, address: u64) -> bool {
        self.process.devices().any(|device| device.any_session().is_some_and(|session| session.owns(address)))
    }

    /// The object of a handle.
    fn object(&self, slot: usize) -> Outcome<Arc<Object>> {
        let object = self.process.objects.libraries.objects.get(self.object_number(slot) as usize);
        object.map_err(|_| Refusal::status(self.loaded.status().not_initialized))
    }

    /// Makes an object where the call goes, when it is sent now.
    fn ensure(&self, object: &Arc<Object>) -> Outcome<()> {
        self.to.map_or(Ok(()), |(device, session)| object.ensure(device, session))
    }

    /// What of a parameter decides whether a library takes the call. Where nothing is described, that is what a library
    /// asks of its numbers too: whether an address is there, how a leading dimension compares with the sizes before it,
    /// whether a step is zero, whether a count is even (cuRAND makes normal numbers in pairs).
    fn choose(&self, at: usize, described: bool, choices: &mut impl Hasher) {
        let (parameter, slot, number) = (&self.function.parameters[at], self.slots[at], self.number(at));
        match parameter.kind {
            Kind::Enum => (at, number).hash(choices),
            Kind::Which => (at, self.object_number(slot)).hash(choices),
            Kind::F32 => (at, f32::from_bits(slot as u32) > 0.0).hash(choices),
            Kind::F64 | Kind::Complex => (at, f64::from_bits(slot as u64) > 0.0).hash(choices),
            Kind::Scalar(_) if slot == 0 => (at, slot).hash(choices),
            Kind::Device if !described => (at, slot == 0).hash(choices),
            Kind::I32 | Kind::U32 | Kind::I64 | Kind::U64 if !described => match parameter.name.as_str() {
                name if name.starts_with("ld") => {
                    let is_size = |at: &usize| matches!(self.function.parameters[*at].kind, Kind::Dim | Kind::Dim64);
                    (0..at).filter(is_size).for_each(|size| (number >= self.number(size)).hash(choices));
                }
                name if name.starts_with("inc") => (number == 0).hash(choices),
                "count" => (number % 2 == 0).hash(choices),
                _ => {}
            },
            _ => {}
        }
    }

    /// Hashes what a number says of an object. Of how large a thing is made, whether there is anything of it: for what
    /// changes with every call, no call need wait.
    fn say(&self, at: usize, says: &mut impl Hasher) {
        let (parameter, slot, number) = (&self.function.parameters[at], self.slots[at], self.number(at));
        match parameter.kind {
            Kind::I64 | Kind::Dim64 if self.function.way == Way::Make => (at, number == 0).hash(says),
            Kind::Enum | Kind::I32 | Kind::U32 | Kind::I64 | Kind::U64 | Kind::Dim | Kind::Dim64 => {
                (at, number).hash(says)
            }
            Kind::F32 | Kind::F64 | Kind::Complex => (at, slot).hash(says),
            Kind::Device if self.function.way == Way::Make => (at, slot == 0).hash(says),
            _ => {}
        }
    }

    /// Hash of what a description chooses: all that it says, of addresses how they are aligned.
    fn choices_of(&self, contents: &Contents) -> u64 {
        let mut choices = DefaultHasher::new();
        (contents.describe, &contents.arguments).hash(&mut choices);
        for (what, arguments) in &contents.changes {
            let address = contents.numbers.get(&what.1).filter(|number| self.is_of_a_device(**number));
            match address {
                Some(address) => (what, Operands::alignment(*address)).hash(&mut choices),
                None => (what, arguments).hash(&mut choices),
            }
        }
        choices.finish()
    }

    /// The number of a handle: its value, of which the upper half means nothing where handles are C ints; or what lies
    /// there.
    pub fn object_number(&self, slot: usize) -> u64 {
        let source = self.loaded.library.source;
        if source.in_place && slot != 0 {
            // SAFETY: the caller's structure, which is longer than a number.
            unsafe { (slot as *const u64).read_unaligned() }
        } else if source.small_handles {
            u64::from(slot as u32)
        } else {
            slot as u64
        }
    }

    /// Memory of a lease that has ended is refused by name.
    fn check_address(&self, address: u64) -> Outcome<()> {
        if !self.process.has_ended() {
            return Ok(());
        }
        match self.process.stale(address) {
            Some(error) => Err(Refusal::from_cuda(self.loaded.status(), error)),
            None => Ok(()),
        }
    }
}
