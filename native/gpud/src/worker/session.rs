//! One client's session: its memory account, its lease, and the operations on its device.

use crate::images::{self, Hash, Image};
use crate::ledger::{Away, Ledger};
use crate::orders::{LeasePart, Report};
use crate::passing::Channel;
use crate::worker::bulk::Bulk;
use crate::worker::gate::Gate;
use crate::worker::gpu_time::GpuTime;
use crate::worker::host::Host;
use crate::worker::host_memory::{ALLOCATION_BYTES, GRAPH_BYTES, HostMemory, MODULE_BYTES, OBJECT_BYTES};
use crate::worker::outbox::{Outbox, async_error};
use crate::worker::peers::Links;
use crate::worker::pinned::Pinned;
use sluice_api::libraries::Way;
use sluice_backend::graph::GraphId;
use sluice_backend::{CudaError, CudaResult, Device, ModuleInfo};
use sluice_protocol::control::{CreditRecall, LeaseEnded, Printed};
use sluice_protocol::frame::ASKED_IMAGE_BYTES;
use sluice_protocol::library::{Argument, take_arguments};
use sluice_protocol::messages::{MemGrowReply, ModuleFind, ModuleFindReply, PeerLink, PeerLinkReply, RebindReply};
use sluice_protocol::wire::Wire;
use sluice_protocol::{Failure, LeaseProcess, ReplyTo, cuda, opcode};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// What is allocated is backed by whole pieces of the device; it may begin and end inside one.
const BACKING_BYTES: u64 = 2 << 20;
/// How long running work may take before a lease that is to be parked is ended without keeping its memory.
pub const DRAIN_TIME: Duration = Duration::from_secs(6);
/// A growth brings at least this much, and as much as there is already, so that the next allocations need not ask.
const LEAST_GROWTH: u64 = 64 << 20;
/// Modules that wait for their images at one time; the images of further ones are sent.
const MOST_FINDINGS: usize = 64;
/// Growths that wait for memory at one time: a client has one for each thread that waits.
const MOST_GROWTHS: usize = 1024;
/// What is more than was asked for is at most this part of the lease's memory.
const GROWTH_SHARE: u64 = 16;

/// Where the session stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Work is executed.
    Active,
    /// The lease ends with this sentence: nothing new is executed, and what was issued runs to its end.
    Draining(String),
    /// The lease has ended with this sentence; what was allocated is parked until a new lease is bound.
    Parked(String),
    /// The client said goodbye, or the lease was ended for good.
    Over,
}

/// A module that waits for its image.
struct Finding {
    request: ModuleFind,
    reply: ReplyTo<ModuleFindReply>,
}

/// See the module.
pub struct Session {
    pub device: Arc<dyn Device>,
    pub outbox: Arc<Outbox>,
    /// The client's functions and memory.
    pub host: Arc<Host>,
    pub supervisor: Arc<Channel>,
    pub phase: Phase,
    pub bulk: Arc<Bulk>,
    /// The client's page-locked memory.
    pub pinned: Pinned,
    lease: LeasePart,
    /// The client's process, as it calls itself.
    client: u32,
    ledger: Arc<Ledger>,
    gate: Arc<Gate>,
    /// Bytes charged for this process: its allocations and its idle credit.
    credit: u64,
    /// Address to bytes.
    allocations: BTreeMap<u64, u64>,
    allocated: u64,
    /// The program's own physical memory: handle to bytes, part of `allocated`.
    physical: HashMap<u64, u64>,
    /// What loaded modules' variables take, by module.
    modules: HashMap<u64, u64>,
    /// Bytes of the heap for `malloc` in kernels.
    heap: u64,
    growths: VecDeque<(u64, ReplyTo<MemGrowReply>)>,
    /// Growths at the front that have waited since the supervisor was asked; the supervisor is asked once at a time.
    recalled: usize,
    rebinds: HashMap<u64, ReplyTo<RebindReply>>,
    /// What it has with the client's other devices here.
    pub links: Arc<Links>,
    /// Of what the supervisor is asked.
    next_call: u64,
    /// The first is what the supervisor has been asked.
    findings: VecDeque<Finding>,
    /// The session's part of the host's memory.
    pub memory: Arc<HostMemory>,
    /// What loaded modules, graphs, library objects and recorded calls count there.
    images: HashMap<u64, u64>,
    graphs: HashMap<u64, Vec<[u64; 2]>>,
    objects: HashMap<u64, u64>,
    recordings: HashMap<u64, u64>,
    /// See [`Session::posted_failed`]: the first one.
    failed: Option<Failure>,
    pub gpu_time: Arc<GpuTime>,
}

fn graph_bytes(nodes: &[[u64; 2]]) -> u64 {
    nodes.iter().flatten().sum()
}

/// A backend's error as it travels.
pub fn failure(error: CudaError) -> Failure {
    Failure { code: error.code, text: error.text }
}

impl Session {
    /// A session on an opened device, of the process that calls itself `client`.
    pub fn new(
        device: Arc<dyn Device>,
        outbox: Arc<Outbox>,
        supervisor: Arc<Channel>,
        lease: LeasePart,
        client: u32,
        ledger: Arc<Ledger>,
        gate: Arc<Gate>,
    ) -> Session {
        ledger.set_client(lease.slot, client);
        ledger.set_present(lease.slot);
        let memory = Arc::clone(&outbox.memory);
        memory.sit(Arc::clone(&ledger), lease.slot);
        Session {
            gpu_time: Arc::new(GpuTime::new(Arc::clone(&device), Arc::clone(&ledger), lease.slot)),
            device,
            host: Arc::new(Host::new(Arc::clone(&outbox))),
            outbox,
            supervisor,
            phase: Phase::Active,
            bulk: Arc::default(),
            pinned: Pinned::default(),
            lease,
            client,
            ledger,
            gate,
            credit: 0,
            allocations: BTreeMap::new(),
            allocated: 0,
            physical: HashMap::new(),
            modules: HashMap::new(),
            heap: 0,
            growths: VecDeque::new(),
            recalled: 0,
            rebinds: HashMap::new(),
            links: Arc::default(),
            next_call: 1,
            findings: VecDeque::new(),
            memory,
            images: HashMap::new(),
            graphs: HashMap::new(),
            objects: HashMap::new(),
            recordings: HashMap::new(),
            failed: None,
        }
    }

    /// The lease of now.
    pub fn lease(&self) -> &LeasePart {
        &self.lease
    }

    /// Bytes that may be allocated without asking.
    pub fn idle_credit(&self) -> u64 {
        self.credit - self.allocated
    }

    /// Tells the supervisor; when it is gone, this process is about to end with it.
    pub fn report(&self, report: &Report) {
        let _ = self.supervisor.send(report, &[]);
    }

    /// The device, or why nothing can be executed now.
    pub fn active(&self) -> Result<&dyn Device, Failure> {
        match &self.phase {
            Phase::Active => Ok(self.device.as_ref()),
            Phase::Draining(reason) | Phase::Parked(reason) => {
                Err(Failure::new(cuda::ERROR_DEVICE_UNAVAILABLE, reason.clone()))
            }
            Phase::Over => Err(Failure::new(cuda::ERROR_DEVICE_UNAVAILABLE, "the lease has ended")),
        }
    }

    /// The device, for work that is queued; out of memory where too much is.
    pub fn issuing(&self) -> Result<&dyn Device, Failure> {
        let device = self.active()?;
        self.memory.check_queue(device.queued_bytes())?;
        Ok(device)
    }

    /// The device, for a call that is answered when its turn has come. Twice as much may be queued then: a program that
    /// has queued too much can wait for it.
    pub fn answering(&self) -> Result<&dyn Device, Failure> {
        let device = self.active()?;
        self.memory.check_queue(device.queued_bytes() / 2)?;
        Ok(device)
    }

    /// Makes an object that counts as `bytes` of the host's memory.
    pub fn make(&self, bytes: u64, make: impl FnOnce(&dyn Device) -> CudaResult<()>) -> Result<(), Failure> {
        let device = self.active()?;
        self.memory.charge(bytes)?;
        make(device).map_err(failure).inspect_err(|_| self.memory.release(bytes))
    }

    /// Ends an object of [`Session::make`].
    pub fn unmake(&self, bytes: u64, unmake: impl FnOnce(&dyn Device) -> CudaResult<()>) -> Result<(), Failure> {
        unmake(self.device.as_ref()).map_err(failure)?;
        self.memory.release(bytes);
        Ok(())
    }

    /// Charges what a module's image takes on the host.
    pub fn charge_image(&mut self, image: &[u8]) -> Result<u64, Failure> {
        let bytes = MODULE_BYTES + self.active()?.module_bytes(image);
        self.memory.charge(bytes).map(|()| bytes)
    }

    /// Keeps the charge of a loaded module.
    pub fn keep_charge(&mut self, module: u64, bytes: u64) {
        self.images.insert(module, bytes);
    }

    /// Releases the charge of an unloaded module.
    pub fn release_image(&mut self, module: u64) {
        self.memory.release(self.images.remove(&module).unwrap_or(0));
    }

    /// Makes a graph, and charges the bytes of its nodes.
    pub fn make_graph(
        &mut self,
        graph: u64,
        nodes: Vec<[u64; 2]>,
        make: impl FnOnce(&dyn Device) -> CudaResult<()>,
    ) -> Result<(), Failure> {
        self.make(GRAPH_BYTES + graph_bytes(&nodes), make)?;
        self.graphs.insert(graph, nodes);
        Ok(())
    }

    /// Changes nodes of a graph, and charges the difference in bytes.
    pub fn change_graph(
        &mut self,
        graph: u64,
        changes: &[(u32, u64)],
        change: impl FnOnce(&dyn Device) -> CudaResult<()>,
    ) -> Result<(), Failure> {
        let mut nodes = self.graphs.get(&graph).cloned().unwrap_or_default();
        let before = graph_bytes(&nodes);
        for (place, bytes) in changes {
            if let Some([work, _]) = nodes.get_mut(*place as usize) {
                *work = *bytes;
            }
        }
        let after = graph_bytes(&nodes);
        self.make(after.saturating_sub(before), change)?;
        self.memory.release(before.saturating_sub(after));
        self.graphs.insert(graph, nodes);
        Ok(())
    }

    /// Ends a graph.
    pub fn end_graph(&mut self, graph: u64) -> Result<(), Failure> {
        let bytes = self.graphs.get(&graph).map_or(0, |nodes| GRAPH_BYTES + graph_bytes(nodes));
        self.unmake(bytes, |device| device.destroy_graph(GraphId(graph)))?;
        self.graphs.remove(&graph);
        Ok(())
    }

    /// Charges the object that a library's call makes, and releases the one that it ends.
    pub fn charge_object(&mut self, library: u32, function: u32, arguments: &[u8]) -> Result<(), Failure> {
        let called = sluice_api::libraries::library((library >> 16) as u16);
        let way = called.and_then(|library| library.numbered(function)).map(|function| function.way);
        if !matches!(way, Some(Way::Make | Way::Describe | Way::End | Way::Drop)) {
            return Ok(());
        }
        let number = take_arguments(arguments).unwrap_or_default().into_iter().find_map(|argument| match argument {
            Argument::New(number) | Argument::Object(number) | Argument::End(number) => Some(number),
            _ => None,
        });
        let Some(number) = number else { return Ok(()) };
        if matches!(way, Some(Way::End | Way::Drop)) {
            self.memory.release(self.objects.remove(&number).unwrap_or(0));
        } else if !self.objects.contains_key(&number) {
            let bytes = OBJECT_BYTES + arguments.len() as u64;
            self.memory.charge(bytes)?;
            self.objects.insert(number, bytes);
        }
        Ok(())
    }

    /// Charges a recorded call, instead of the one that had its number before.
    pub fn charge_recording(&mut self, recording: u64, arguments: usize) -> Result<(), Failure> {
        let bytes = OBJECT_BYTES + 2 * arguments as u64;
        self.memory.charge(bytes)?;
        self.memory.release(self.recordings.insert(recording, bytes).unwrap_or(0));
        Ok(())
    }

    /// Releases the charge of a recorded call that is forgotten.
    pub fn release_recording(&mut self, recording: u64) {
        self.memory.release(self.recordings.remove(&recording).unwrap_or(0));
    }

    /// Why the session cannot go on, where this process has more memory than its lease and its accounts explain.
    pub fn takes_too_much(&self) -> Option<String> {
        // Of a real driver it is not known what it takes for itself.
        if self.device.backing().is_some() {
            return None;
        }
        let (has, may) = self.memory.is_beyond()?;
        let (has, may) = (has >> 20, may >> 20);
        Some(format!("the session ended: it takes {has} MiB of the GPU server's own memory and may take {may} MiB"))
    }

    /// Tells the client of a failure that no call waits for.
    pub fn send_async_error(&self, failure: &Failure) {
        send_async_error(&self.outbox, 0, failure);
    }

    /// Free and total bytes of the lease. Idle credit counts as free, as it can be recalled, and so does the memory of
    /// clients that are gone.
    pub fn memory(&self) -> (u64, u64) {
        let total = self.ledger.limit();
        (total.saturating_sub(self.ledger.taken_by_present()), total)
    }

    /// The client's connection was lost.
    pub fn set_away(&self, how: Away) {
        self.ledger.set_away(self.lease.slot, how);
        self.report(&Report::Lost);
    }

    /// The client is back.
    pub fn set_present(&self) {
        self.ledger.set_present(self.lease.slot);
        self.report(&Report::Returned);
    }

    /// The processes of the lease's clients, and what counts for each.
    pub fn processes(&self) -> Vec<LeaseProcess> {
        self.ledger.clients().map(|(pid, totals)| LeaseProcess { pid, bytes: totals.taken() }).collect()
    }

    /// Maps page-locked memory of the client: of all processes of a lease at most as much as it has device memory.
    pub fn open_pinned(&mut self, offset: u64, bytes: u64) -> Result<(), Failure> {
        self.active()?;
        let memory = Arc::new(self.pinned.map(offset, bytes)?);
        self.settle_pinned();
        if !self.ledger.pin(self.lease.slot, bytes) {
            let text = format!("the lease has page-locked memory of its {} bytes already", self.ledger.limit());
            return Err(Failure::new(cuda::ERROR_OUT_OF_MEMORY, text));
        }
        let opened = self.device.open_pinned(&memory).map_err(failure);
        if opened.is_ok() {
            self.pinned.keep(offset, memory);
        }
        self.settle_pinned();
        opened
    }

    /// No further copy uses it.
    pub fn close_pinned(&mut self, offset: u64) -> Result<(), Failure> {
        self.device.close_pinned(self.pinned.close(offset)?);
        self.settle_pinned();
        Ok(())
    }

    fn settle_pinned(&mut self) {
        self.ledger.set_pinned(self.lease.slot, self.pinned.bytes());
    }

    /// Writes what was measured into the account.
    pub fn settle(&self) {
        self.gpu_time.settle();
        self.settle_backing(0);
        self.memory.settle_queue(self.device.queued_bytes());
    }

    /// Writes down how many bytes of the device lie behind what the process holds, and so many that it is about to take.
    fn settle_backing(&self, coming: u64) {
        if let Some(backing) = self.device.backing() {
            let bytes = backing + (self.held() - self.allocated) + coming;
            self.ledger.set_backing(self.lease.slot, bytes);
        }
    }

    /// Counts calls and bytes.
    pub fn count(&self, calls: u64, bytes_in: u64, bytes_out: u64) {
        self.ledger.count(self.lease.slot, calls, bytes_in, bytes_out);
    }

    /// A posted operation could not be queued: the client is told, and the next call that waits for the device reports
    /// it, once.  A sticky error has been told when it happened; after the lease's end everything fails.
    pub fn posted_failed(&mut self, seq: u64, failure: Failure) {
        if cuda::is_sticky(failure.code) {
            return;
        }
        send_async_error(&self.outbox, seq, &failure);
        if self.phase == Phase::Active {
            self.failed.get_or_insert(failure);
        }
    }

    /// The failure of a posted operation that has not been reported.
    pub fn take_failed(&mut self) -> Option<Failure> {
        self.failed.take()
    }

    /// Backs an allocation within the credit.
    pub fn allocate(&mut self, address: u64, bytes: u64) -> Result<(), Failure> {
        if bytes > self.idle_credit() {
            return Err(Failure::new(cuda::ERROR_OUT_OF_MEMORY, "the allocation is larger than this process's credit"));
        }
        self.settle_backing(bytes + 2 * BACKING_BYTES);
        let made = self.make(ALLOCATION_BYTES, |device| device.alloc(address, bytes));
        self.settle_backing(0);
        made?;
        self.allocations.insert(address, bytes);
        self.set_allocated(self.allocated + bytes);
        Ok(())
    }

    /// Returns an allocation; its bytes stay credit.
    pub fn free(&mut self, address: u64) -> Result<(), Failure> {
        let bytes = self.allocations.get(&address).copied();
        let bytes = bytes.ok_or_else(|| Failure::new(cuda::ERROR_INVALID_VALUE, "nothing is allocated there"))?;
        self.unmake(ALLOCATION_BYTES, |device| device.free(address, Box::new(|_| {})))?;
        self.allocations.remove(&address);
        self.set_allocated(self.allocated - bytes);
        Ok(())
    }

    /// Backs physical memory without an address within the credit.
    pub fn create_physical(&mut self, handle: u64, bytes: u64) -> Result<(), Failure> {
        if bytes > self.idle_credit() {
            return Err(Failure::new(cuda::ERROR_OUT_OF_MEMORY, "the memory is larger than this process's credit"));
        }
        if self.physical.contains_key(&handle) {
            return Err(Failure::new(cuda::ERROR_INVALID_VALUE, "the memory's handle is already in use"));
        }
        self.settle_backing(bytes);
        let made = self.make(ALLOCATION_BYTES, |device| device.create_physical(handle, bytes));
        self.settle_backing(0);
        made?;
        self.physical.insert(handle, bytes);
        self.set_allocated(self.allocated + bytes);
        Ok(())
    }

    /// Ends it; its bytes stay credit.
    pub fn release_physical(&mut self, handle: u64) -> Result<(), Failure> {
        let bytes = self.physical.get(&handle).copied();
        let bytes = bytes.ok_or_else(|| Failure::new(cuda::ERROR_INVALID_VALUE, "there is no such memory"))?;
        self.unmake(ALLOCATION_BYTES, |device| device.release_physical(handle))?;
        self.physical.remove(&handle);
        self.set_allocated(self.allocated - bytes);
        Ok(())
    }

    fn set_allocated(&mut self, bytes: u64) {
        self.allocated = bytes;
        match self.phase {
            Phase::Active | Phase::Draining(_) => self.ledger.set_memory(self.lease.slot, self.held()),
            Phase::Parked(_) => {
                self.credit = bytes;
                self.ledger.set_parked(self.lease.slot, self.held());
            }
            Phase::Over => {}
        }
    }

    /// Adds to the credit, now or when siblings have given idle credit back.
    pub fn grow(&mut self, bytes: u64, reply: ReplyTo<MemGrowReply>) {
        if let Err(failure) = self.active() {
            return reply.send(Err(failure));
        }
        match self.try_grow(bytes) {
            Some(granted) => reply.send(Ok(MemGrowReply { granted })),
            None if bytes > self.ledger.limit() || self.growths.len() >= MOST_GROWTHS => {
                reply.send(Err(self.out_of_memory(bytes)));
            }
            None => {
                self.growths.push_back((bytes, reply));
                self.ask_for_memory();
            }
        }
    }

    /// Has the supervisor look for memory for the first growth that waits, unless it does so already.
    fn ask_for_memory(&mut self) {
        if self.recalled == 0
            && let Some((bytes, _)) = self.growths.front()
        {
            self.report(&Report::Wanted { bytes: *bytes });
            self.recalled = self.growths.len();
        }
    }

    fn try_grow(&mut self, bytes: u64) -> Option<u64> {
        let ahead = self.allocated.max(LEAST_GROWTH).min(self.ledger.limit() / GROWTH_SHARE);
        let generous = bytes.max(ahead);
        let granted = [generous, bytes].into_iter().find(|bytes| self.ledger.charge(self.lease.slot, *bytes))?;
        self.credit += granted;
        Some(granted)
    }

    fn out_of_memory(&self, bytes: u64) -> Failure {
        let (free, total) = self.memory();
        Failure::new(
            cuda::ERROR_OUT_OF_MEMORY,
            format!("{bytes} bytes were asked for; {free} of the lease's {total} bytes are free"),
        )
    }

    /// The supervisor has freed what it could. If no growth can be served, growths that waited for this answer are out of
    /// memory. For other growths the supervisor is asked again.
    pub fn freed(&mut self) {
        let waited = std::mem::take(&mut self.recalled);
        let mut served = 0;
        while let Some(granted) = self.growths.front().map(|(bytes, _)| *bytes).and_then(|bytes| self.try_grow(bytes)) {
            if let Some((_, reply)) = self.growths.pop_front() {
                reply.send(Ok(MemGrowReply { granted }));
            }
            served += 1;
        }
        if served == 0 {
            let refused: Vec<_> = self.growths.drain(..waited.min(self.growths.len())).collect();
            refused.into_iter().for_each(|(bytes, reply)| reply.send(Err(self.out_of_memory(bytes))));
        }
        self.ask_for_memory();
    }

    /// The client gives idle credit back.
    pub fn credit_returned(&mut self, bytes: u64) -> Result<(), Failure> {
        if bytes > self.idle_credit() {
            return Err(Failure::new(cuda::ERROR_INVALID_VALUE, "more credit was returned than was idle"));
        }
        self.credit -= bytes;
        self.ledger.release(self.lease.slot, bytes);
        Ok(())
    }

    /// Asks the client for idle credit.
    pub fn recall(&self, bytes: u64) {
        let mut payload = Vec::new();
        CreditRecall { bytes }.put(&mut payload);
        self.outbox.send(opcode::CREDIT_RECALL, 0, &payload);
    }

    /// Charges a module's own device memory (its variables) to the lease.
    pub fn charge_module(&mut self, module: u64, info: &ModuleInfo) -> bool {
        if info.bytes == 0 {
            return true;
        }
        let fits = self.ledger.charge(self.lease.slot, info.bytes);
        if fits {
            self.modules.insert(module, info.bytes);
            self.set_allocated(self.allocated);
        }
        fits
    }

    /// Charges the heap for `malloc` in kernels to the lease: what it has now, instead of what it had.
    pub fn charge_heap(&mut self, bytes: u64) -> bool {
        if bytes == self.heap {
            return true;
        }
        let fits = self.ledger.charge(self.lease.slot, bytes.saturating_sub(self.heap));
        if fits {
            self.ledger.release(self.lease.slot, self.heap.saturating_sub(bytes));
            self.heap = bytes;
            self.set_allocated(self.allocated);
            self.settle_backing(0);
        }
        fits
    }

    /// Bytes of the heap for `malloc` in kernels.
    pub fn heap(&self) -> u64 {
        self.heap
    }

    /// The context has ended: so has its heap.
    pub fn reset(&mut self) {
        self.device.reset();
        let bytes = std::mem::take(&mut self.heap);
        if bytes > 0 && matches!(self.phase, Phase::Active | Phase::Draining(_)) {
            self.ledger.release(self.lease.slot, bytes);
        }
        self.set_allocated(self.allocated);
    }

    /// Gives an unloaded module's memory back.
    pub fn release_module(&mut self, module: u64) {
        if let Some(bytes) = self.modules.remove(&module) {
            if matches!(self.phase, Phase::Active | Phase::Draining(_)) {
                self.ledger.release(self.lease.slot, bytes);
            }
            self.set_allocated(self.allocated);
        }
    }

    /// Bytes that this process holds on the device: allocations, modules' variables and the kernels' heap.
    fn held(&self) -> u64 {
        self.allocated + self.modules.values().sum::<u64>() + self.heap
    }

    /// The client is away: what it has on the device waits for it, unless its lease ends just now.
    pub fn hold(&self) {
        if self.phase == Phase::Active {
            self.device.pause(true);
        }
    }

    /// Begins to end the lease. What is answered says whether everything issued has run without a failure; it is
    /// waited for, up to [`DRAIN_TIME`], without the session: host functions and bulk copies end by frames.
    pub fn drain(&mut self, reason: &str) -> Receiver<bool> {
        self.phase = Phase::Draining(reason.to_owned());
        // The client may be away.
        self.device.pause(false);
        let (sender, drained) = channel();
        // A device that cannot even be asked drops the sender.
        let _ = self.device.synchronize(Box::new(move |outcome| {
            let _ = sender.send(outcome.is_ok());
        }));
        drained
    }

    /// Ends the lease of a session that is drained, and keeps the memory if it may be kept; answers the bytes that are
    /// parked.
    pub fn park(&mut self, reason: &str, park_limit: u64) -> Option<u64> {
        // The client may have said goodbye meanwhile.
        if !matches!(self.phase, Phase::Draining(_)) || self.held() > park_limit {
            return None;
        }
        self.device.park().ok()?;
        for (bytes, reply) in std::mem::take(&mut self.growths) {
            reply.send(Err(self.out_of_memory(bytes)));
        }
        self.recalled = 0;
        self.settle();
        let held = self.held();
        self.ledger.release(self.lease.slot, self.credit + held - self.allocated);
        self.ledger.set_memory(self.lease.slot, 0);
        self.ledger.set_parked(self.lease.slot, held);
        self.credit = self.allocated;
        self.phase = Phase::Parked(reason.to_owned());
        self.tell_ended(true, reason);
        Some(held)
    }

    /// Tells the client that its lease has ended.
    pub fn tell_ended(&self, parked: bool, reason: &str) {
        let mut payload = Vec::new();
        let parked_bytes = if parked { self.held() } else { 0 };
        LeaseEnded { parked, parked_bytes, reason: reason.to_owned() }.put(&mut payload);
        self.outbox.send(opcode::LEASE_ENDED, 0, &payload);
    }

    /// Has the server keep an image that it did not have.
    pub fn keep_image(&self, hash: &Hash, image: &[u8]) {
        if image.len() < ASKED_IMAGE_BYTES {
            return;
        }
        // An image that cannot be kept is sent again.
        if let Ok(memory) = images::seal(image) {
            let _ = self.supervisor.send(&Report::Image { hash: *hash }, &[memory.as_fd()]);
        }
    }

    /// Asks the supervisor for the image of a module.
    pub fn find_image(&mut self, request: ModuleFind, reply: ReplyTo<ModuleFindReply>) {
        if self.findings.len() >= MOST_FINDINGS {
            return reply.send(Ok(ModuleFindReply { known: 0, info: sluice_protocol::ModuleInfo::default() }));
        }
        self.findings.push_back(Finding { request, reply });
        if self.findings.len() == 1 {
            self.ask_for_image();
        }
    }

    /// One question at a time: many would fill the line to the supervisor, on which others come the other way.
    fn ask_for_image(&self) {
        if let Some(Finding { request, .. }) = self.findings.front() {
            self.report(&Report::FindImage { hash: request.hash, proof: request.proof });
        }
    }

    /// The supervisor has answered: the module is loaded, or its image asked for.
    pub fn image_found(&mut self, image: Option<Image>) {
        let Some(Finding { request: ModuleFind { module, heap, .. }, reply }) = self.findings.pop_front() else {
            return;
        };
        self.ask_for_image();
        reply.send(match image {
            None => Ok(ModuleFindReply { known: 0, info: sluice_protocol::ModuleInfo::default() }),
            Some(image) => self.load(module, heap, image.bytes()).map(|info| ModuleFindReply { known: 1, info }),
        });
    }

    /// Asks the supervisor whether a token's lease may be taken up.
    pub fn ask_rebind(&mut self, token: &str, reply: ReplyTo<RebindReply>) {
        if !matches!(self.phase, Phase::Parked(_)) {
            return reply.send(Err(Failure::new(cuda::ERROR_INVALID_VALUE, "the session has a lease")));
        }
        let call = self.call_number();
        self.rebinds.insert(call, reply);
        self.report(&Report::Rebind { call, token: token.to_owned() });
    }

    fn call_number(&mut self) -> u64 {
        self.next_call += 1;
        self.next_call
    }

    /// Asks the supervisor for a line to the worker of another session.
    pub fn ask_link(&mut self, request: &PeerLink<'_>, reply: ReplyTo<PeerLinkReply>) {
        if let Err(failure) = self.active() {
            return reply.send(Err(failure));
        }
        let call = self.call_number();
        self.links.wait(call, reply, request.nonce);
        self.report(&Report::Link { call, nonce: request.nonce.to_owned() });
    }

    /// The supervisor refused.
    pub fn not_rebound(&mut self, call: u64, text: String) {
        if let Some(reply) = self.rebinds.remove(&call) {
            reply.send(Err(Failure::new(cuda::ERROR_DEVICE_UNAVAILABLE, text)));
        }
    }

    /// Takes up a new lease: charges what is parked and puts it back at its addresses.
    pub fn rebound(&mut self, call: u64, lease: LeasePart, ledger: Ledger) {
        let Some(reply) = self.rebinds.remove(&call) else { return };
        let held = self.held();
        if !ledger.charge(lease.slot, held) {
            self.report(&Report::Resumed { taken: false });
            let text =
                format!("{held} bytes are parked, more than the new lease's {} bytes have free", lease.memory_bytes);
            return reply.send(Err(Failure::new(cuda::ERROR_OUT_OF_MEMORY, text)));
        }
        if let Err(error) = self.device.unpark() {
            ledger.release(lease.slot, held);
            self.report(&Report::Resumed { taken: false });
            return reply.send(Err(failure(error)));
        }
        self.ledger.set_parked(self.lease.slot, 0);
        // The client may be away, and learns of the new lease when it is back.
        ledger.set_presence(lease.slot, self.ledger.presence(self.lease.slot));
        self.ledger = Arc::new(ledger);
        self.lease = lease;
        self.gpu_time.sit(Arc::clone(&self.ledger), self.lease.slot);
        self.ledger.set_client(self.lease.slot, self.client);
        self.gate.sit(Arc::clone(&self.ledger), self.lease.slot);
        self.memory.sit(Arc::clone(&self.ledger), self.lease.slot);
        self.credit = self.allocated;
        self.phase = Phase::Active;
        self.ledger.set_memory(self.lease.slot, held);
        self.settle_pinned();
        self.settle_backing(0);
        self.report(&Report::Resumed { taken: true });
        reply.send(Ok(RebindReply {
            credit: 0,
            memory_bytes: self.lease.memory_bytes,
            lease_id: self.lease.lease_id.clone(),
        }));
    }
}

/// Sends what kernels have printed.
pub fn send_printed(outbox: &Outbox, text: &str) {
    let mut payload = Vec::new();
    Printed { text: text.to_owned() }.put(&mut payload);
    outbox.send(opcode::PRINTED, 0, &payload);
}

/// Tells the client of a failure that no call waits for.
pub fn send_async_error(outbox: &Outbox, seq: u64, failure: &Failure) {
    outbox.send(opcode::ASYNC_ERROR, 0, &async_error(seq, failure));
}
