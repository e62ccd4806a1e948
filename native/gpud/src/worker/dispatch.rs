//! The operations of the declaration list, executed on the session's device.

use crate::images::hash_of;
use crate::worker::graph;
use crate::worker::host_memory::{EVENT_BYTES, STREAM_BYTES};
use crate::worker::session::{Phase, Session, failure, send_async_error};
use sluice_backend as backend;
use sluice_backend::graph::{GraphId, HostSide, MemoryOperation, NodeWork, RecordingId};
use sluice_backend::{Copy2D, EventId, FunctionRef, LaunchAttribute, LaunchConfig, ModuleId, StreamId, Way};
use sluice_protocol::control::EventPassed;
use sluice_protocol::generated::Handler;
use sluice_protocol::messages::*;
use sluice_protocol::wire::{Blob, Wire};
use sluice_protocol::{
    Failure, FunctionInfo, GlobalInfo, MOST_PRINTED_BYTES, ModuleInfo, ParameterInfo, ReplyTo, cuda, opcode,
};
use std::sync::Arc;

/// Longest reply to one copy from the device; clients cut larger copies into pieces.
const COPY_BYTES: u64 = sluice_protocol::MAX_FRAME_BYTES as u64 - 4096;

/// Bytes of a kernel's parameters: twice what CUDA allows.
const MOST_PARAMETER_BYTES: usize = 64 << 10;
/// Attributes of one launch; CUDA has fewer kinds.
const MOST_ATTRIBUTES: usize = 64;
/// Operations on words in one call.
const MOST_OPERATIONS: usize = 256;

/// Runs a call that waits for the device and answers later: with its own failure, else with that of a posted operation
/// before it; when it cannot even be queued, it is answered with that.
macro_rules! later {
    ($session:expr, $reply:expr, |$device:ident, $done:ident| $make:expr, $queue:expr) => {{
        let failed = $session.take_failed();
        match $session.answering() {
            Err(error) => $reply.send(Err(error)),
            Ok($device) => {
                let slot = std::sync::Arc::new(std::sync::Mutex::new(Some($reply)));
                let taken = std::sync::Arc::clone(&slot);
                let $done = Box::new(move |outcome: backend::CudaResult<_>| {
                    let reply = taken.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
                    if let Some(reply) = reply {
                        let outcome = outcome.map($make).map_err(failure);
                        reply.send(outcome.and_then(|answer| failed.map_or(Ok(answer), Err)));
                    }
                });
                if let Err(error) = $queue {
                    let reply = slot.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
                    if let Some(reply) = reply {
                        reply.send(Err(failure(error)));
                    }
                }
            }
        }
    }};
}

fn describe(info: backend::ModuleInfo) -> ModuleInfo {
    let functions = info.functions.into_iter().map(|function| FunctionInfo {
        attributes: vec![
            (0, function.max_threads_per_block as i32),
            (1, function.static_shared_bytes as i32),
            (2, function.const_bytes as i32),
            (3, function.local_bytes as i32),
            (4, function.registers as i32),
            (5, function.ptx_version as i32),
            (6, function.binary_version as i32),
            (7, 0),
            (8, function.max_dynamic_shared_bytes as i32),
            (9, -1),
        ],
        parameters: function.params.into_iter().map(|(offset, bytes)| ParameterInfo { offset, bytes }).collect(),
        name: function.name,
    });
    let globals = info.globals.into_iter();
    ModuleInfo {
        functions: functions.collect(),
        globals: globals.map(|g| GlobalInfo { name: g.name, address: g.address, bytes: g.bytes }).collect(),
        heap: info.heap,
    }
}

const HEAP_TOO_LARGE: &str = "the heap of malloc in kernels does not fit into the lease";

impl Session {
    /// Loads a module and charges its memory.
    pub(super) fn load(&mut self, module: u64, heap: u64, image: &[u8]) -> Result<ModuleInfo, Failure> {
        let bytes = self.charge_image(image)?;
        match self.load_charged(module, heap, image) {
            Ok(info) => {
                self.keep_charge(module, bytes);
                Ok(info)
            }
            Err(failure) => {
                self.memory.release(bytes);
                Err(failure)
            }
        }
    }

    fn load_charged(&mut self, module: u64, heap: u64, image: &[u8]) -> Result<ModuleInfo, Failure> {
        let device = self.active()?;
        device.wish_heap(heap);
        let (ahead, before) = (device.heap_with(image), self.heap());
        if let Some(bytes) = ahead
            && !self.charge_heap(bytes)
        {
            return Err(Failure::new(cuda::ERROR_OUT_OF_MEMORY, HEAP_TOO_LARGE));
        }
        let loaded = self.active()?.load_module(ModuleId(module), image).map_err(failure);
        let info = loaded.inspect_err(|_| {
            if ahead.is_some() {
                self.charge_heap(before);
            }
        })?;
        let text = if !self.charge_heap(info.heap) {
            // It was made for this module.
            self.device.reset();
            Some(HEAP_TOO_LARGE)
        } else if !self.charge_module(module, &info) {
            Some("the module's variables do not fit into the lease")
        } else {
            None
        };
        if let Some(text) = text {
            let _ = self.device.unload_module(ModuleId(module));
            return Err(Failure::new(cuda::ERROR_OUT_OF_MEMORY, text));
        }
        Ok(describe(info))
    }
}

impl Session {
    /// No allocation is longer than the lease's memory, so no copy is.
    fn check_bulk(&self, bytes: u64) -> Result<(), Failure> {
        if bytes <= self.memory().1 {
            return Ok(());
        }
        Err(Failure::new(cuda::ERROR_INVALID_VALUE, "the copy is longer than the lease's memory"))
    }
}

impl Handler for Session {
    fn rebind(&mut self, _thread: u32, request: Rebind<'_>, reply: ReplyTo<RebindReply>) {
        self.ask_rebind(request.token, reply);
    }

    fn peer_link(&mut self, _thread: u32, request: PeerLink<'_>, reply: ReplyTo<PeerLinkReply>) {
        self.ask_link(&request, reply);
    }

    fn peer_mark(&mut self, _thread: u32, request: PeerMark) -> Result<(), Failure> {
        let (links, mark) = (Arc::clone(&self.links), request.mark);
        let room = self.links.marks.check_room();
        let issued = room.and_then(|()| self.issuing()).and_then(|device| {
            let passed = Box::new(move || links.marks.pass(mark));
            device.mark(StreamId::from_wire(request.stream), passed).map_err(failure)
        });
        // Nobody is to wait for what was refused.
        issued.inspect_err(|_| self.links.marks.pass(mark))
    }

    fn peer_wait(&mut self, _thread: u32, request: PeerWait<'_>) -> Result<(), Failure> {
        let device = self.issuing()?;
        match self.links.wait_for(request.nonce, request.mark) {
            Some(work) => device.wait(StreamId::from_wire(request.stream), work).map_err(failure),
            None => Ok(()),
        }
    }

    fn credit_return(&mut self, _thread: u32, request: CreditReturn) -> Result<(), Failure> {
        // A recall that crossed the end of the lease asks for credit that is gone already.
        if self.phase == Phase::Active { self.credit_returned(request.bytes) } else { Ok(()) }
    }

    fn goodbye(&mut self, _thread: u32, _request: Goodbye) -> Result<(), Failure> {
        self.phase = Phase::Over;
        Ok(())
    }

    fn bulk_in(&mut self, _thread: u32, request: BulkIn, reply: ReplyTo<BulkInReply>) {
        if let Err(failure) = self.check_bulk(request.bytes) {
            return reply.send(Err(failure));
        }
        self.count(0, request.bytes, 0);
        later!(self, reply, |device, done| |()| BulkInReply, self.bulk.land(device, &self.outbox, &request, done));
    }

    fn bulk_out(&mut self, _thread: u32, request: BulkOut, reply: ReplyTo<BulkOutReply>) {
        if let Err(failure) = self.check_bulk(request.bytes) {
            return reply.send(Err(failure));
        }
        self.count(0, 0, request.bytes);
        later!(self, reply, |device, done| |()| BulkOutReply, self.bulk.leave(device, &request, done));
    }

    fn bulk_taken(&mut self, _thread: u32, request: BulkTaken) -> Result<(), Failure> {
        self.bulk.taken(request.transfer);
        Ok(())
    }

    fn pinned_open(&mut self, _thread: u32, request: PinnedOpen, reply: ReplyTo<PinnedOpenReply>) {
        reply.send(self.open_pinned(request.offset, request.bytes).map(|()| PinnedOpenReply));
    }

    fn pinned_close(&mut self, _thread: u32, request: PinnedClose) -> Result<(), Failure> {
        self.close_pinned(request.offset)
    }

    fn pinned_in(&mut self, _thread: u32, request: PinnedIn, reply: ReplyTo<PinnedInReply>) {
        let part = match self.pinned.part(request.offset, request.bytes) {
            Ok(part) => part,
            Err(failure) => return reply.send(Err(failure)),
        };
        self.count(0, request.bytes, 0);
        let (stream, address) = (StreamId::from_wire(request.stream), request.address);
        later!(
            self,
            reply,
            |device, done| |()| PinnedInReply,
            device.copy_pinned(stream, Way::In, address, part, done)
        );
    }

    fn pinned_out(&mut self, _thread: u32, request: PinnedOut, reply: ReplyTo<PinnedOutReply>) {
        let part = match self.pinned.part(request.offset, request.bytes) {
            Ok(part) => part,
            Err(failure) => return reply.send(Err(failure)),
        };
        self.count(0, 0, request.bytes);
        let (stream, address) = (StreamId::from_wire(request.stream), request.address);
        later!(
            self,
            reply,
            |device, done| |()| PinnedOutReply,
            device.copy_pinned(stream, Way::Out, address, part, done)
        );
    }

    fn mem_alloc(&mut self, _thread: u32, request: MemAlloc) -> Result<(), Failure> {
        self.allocate(request.address, request.bytes)
    }

    fn mem_free(&mut self, _thread: u32, request: MemFree) -> Result<(), Failure> {
        self.free(request.address)
    }

    fn mem_grow(&mut self, _thread: u32, request: MemGrow, reply: ReplyTo<MemGrowReply>) {
        self.grow(request.bytes, reply);
    }

    fn copy_to_device(&mut self, _thread: u32, request: CopyToDevice<'_>) -> Result<(), Failure> {
        let stream = StreamId::from_wire(request.stream);
        self.issuing()?.copy_in(stream, request.address, request.data).map_err(failure)
    }

    fn copy_from_device(&mut self, _thread: u32, request: CopyFromDevice, reply: ReplyTo<CopyFromDeviceReply>) {
        if request.bytes > COPY_BYTES {
            return reply.send(Err(Failure::new(cuda::ERROR_INVALID_VALUE, "the copy is longer than a frame")));
        }
        let stream = StreamId::from_wire(request.stream);
        let due = self.outbox.expect(request.bytes);
        later!(
            self,
            reply,
            |device, done| |data| {
                // Held until the answer has been sent.
                let _ = &due;
                CopyFromDeviceReply { data: Blob(data) }
            },
            device.copy_out(stream, request.address, request.bytes, done)
        );
    }

    fn copy_on_device(&mut self, _thread: u32, request: CopyOnDevice) -> Result<(), Failure> {
        let stream = StreamId::from_wire(request.stream);
        self.issuing()?.copy(stream, request.target, request.source, request.bytes).map_err(failure)
    }

    fn fill(&mut self, _thread: u32, request: Fill) -> Result<(), Failure> {
        let fill = backend::Fill {
            dst: request.address,
            pitch: 0,
            value: request.pattern,
            element: u32::from(request.width),
            width: request.count,
            height: 1,
        };
        self.issuing()?.fill(StreamId::from_wire(request.stream), fill).map_err(failure)
    }

    fn copy_rows_on_device(&mut self, _thread: u32, request: CopyRowsOnDevice) -> Result<(), Failure> {
        let copy = Copy2D {
            dst: request.target,
            dst_pitch: request.target_pitch,
            src: request.source,
            src_pitch: request.source_pitch,
            width: request.width,
            height: request.height,
        };
        self.issuing()?.copy_2d(StreamId::from_wire(request.stream), copy).map_err(failure)
    }

    fn copy_rows_to_device(&mut self, _thread: u32, request: CopyRowsToDevice<'_>) -> Result<(), Failure> {
        let width = usize::try_from(request.width).unwrap_or(0);
        if width == 0 || !request.data.len().is_multiple_of(width) {
            return Err(Failure::new(cuda::ERROR_INVALID_VALUE, "the data are not whole rows"));
        }
        let stream = StreamId::from_wire(request.stream);
        let device = self.issuing()?;
        for (row, data) in (0..).zip(request.data.chunks_exact(width)) {
            let place = request.pitch.checked_mul(row).and_then(|offset| request.address.checked_add(offset));
            let place = place.ok_or_else(|| Failure::code(cuda::ERROR_INVALID_VALUE))?;
            device.copy_in(stream, place, data).map_err(failure)?;
        }
        Ok(())
    }

    fn fill_rows(&mut self, _thread: u32, request: FillRows) -> Result<(), Failure> {
        let fill = backend::Fill {
            dst: request.address,
            pitch: request.pitch,
            value: request.pattern,
            element: u32::from(request.element),
            width: request.width,
            height: request.height,
        };
        self.issuing()?.fill(StreamId::from_wire(request.stream), fill).map_err(failure)
    }

    fn physical_create(&mut self, _thread: u32, request: PhysicalCreate, reply: ReplyTo<PhysicalCreateReply>) {
        reply.send(self.create_physical(request.handle, request.bytes).map(|()| PhysicalCreateReply));
    }

    fn physical_release(&mut self, _thread: u32, request: PhysicalRelease) -> Result<(), Failure> {
        self.release_physical(request.handle)
    }

    fn physical_map(&mut self, _thread: u32, request: PhysicalMap, reply: ReplyTo<PhysicalMapReply>) {
        let map = |device: &dyn backend::Device| device.map_physical(request.address, request.bytes, request.handle);
        let mapped = self.active().and_then(|device| map(device).map_err(failure));
        reply.send(mapped.map(|()| PhysicalMapReply));
    }

    fn physical_unmap(&mut self, _thread: u32, request: PhysicalUnmap, reply: ReplyTo<PhysicalUnmapReply>) {
        let unmap = |device: &dyn backend::Device| device.unmap_physical(request.address, request.bytes);
        let unmapped = self.active().and_then(|device| unmap(device).map_err(failure));
        reply.send(unmapped.map(|()| PhysicalUnmapReply));
    }

    fn physical_access(&mut self, _thread: u32, request: PhysicalAccess, reply: ReplyTo<PhysicalAccessReply>) {
        let (address, bytes, accessible) = (request.address, request.bytes, request.accessible != 0);
        let set = self.active().and_then(|device| device.set_access(address, bytes, accessible).map_err(failure));
        reply.send(set.map(|()| PhysicalAccessReply));
    }

    fn mem_info(&mut self, _thread: u32, _request: MemInfo, reply: ReplyTo<MemInfoReply>) {
        let (free, total) = self.memory();
        reply.send(self.active().map(|_| MemInfoReply { free, total }));
    }

    fn lease_processes(&mut self, _thread: u32, _request: LeaseProcesses, reply: ReplyTo<LeaseProcessesReply>) {
        let processes = self.processes();
        reply.send(self.active().map(|_| LeaseProcessesReply { processes }));
    }

    fn module_query(&mut self, _thread: u32, _request: ModuleQuery, reply: ReplyTo<ModuleQueryReply>) {
        // A hash alone shows nothing of who asks.
        reply.send(Ok(ModuleQueryReply { known: 0, info: ModuleInfo::default() }));
    }

    fn module_find(&mut self, _thread: u32, request: ModuleFind, reply: ReplyTo<ModuleFindReply>) {
        self.find_image(request, reply);
    }

    fn module_load(&mut self, _thread: u32, request: ModuleLoad<'_>, reply: ReplyTo<ModuleLoadReply>) {
        if hash_of(&[request.image]) != request.hash {
            return reply.send(Err(Failure::new(cuda::ERROR_INVALID_IMAGE, "the image does not have its hash")));
        }
        let loaded = self.load(request.module, request.heap, request.image);
        let usable = loaded.is_ok();
        reply.send(loaded.map(|info| ModuleLoadReply { info }));
        if usable {
            self.keep_image(&request.hash, request.image);
        }
    }

    fn ptx_check(&mut self, _thread: u32, request: PtxCheck<'_>, reply: ReplyTo<PtxCheckReply>) {
        let checked = self.active().and_then(|device| device.check_ptx(request.ptx).map_err(failure));
        reply.send(checked.map(|()| PtxCheckReply));
    }

    fn module_unload(&mut self, _thread: u32, request: ModuleUnload) -> Result<(), Failure> {
        self.release_module(request.module);
        self.device.unload_module(ModuleId(request.module)).map_err(failure)?;
        self.release_image(request.module);
        Ok(())
    }

    fn function_set_attribute(&mut self, _thread: u32, request: FunctionSetAttribute) -> Result<(), Failure> {
        let function = FunctionRef { module: ModuleId(request.module), index: request.function };
        self.active()?.set_function_attribute(function, request.attribute, request.value).map_err(failure)
    }

    fn launch(&mut self, _thread: u32, request: Launch<'_>) -> Result<(), Failure> {
        let function = FunctionRef { module: ModuleId(request.module), index: request.function };
        let config = LaunchConfig {
            grid: request.grid,
            block: request.block,
            shared_bytes: request.shared_bytes,
            cooperative: request.flags & 1 != 0,
            params: request.parameters.to_vec(),
            attributes: Vec::new(),
        };
        check_launch(&config)?;
        self.issuing()?.launch(StreamId::from_wire(request.stream), function, config).map_err(failure)
    }

    fn launch_with(&mut self, _thread: u32, request: LaunchWith<'_>) -> Result<(), Failure> {
        let function = FunctionRef { module: ModuleId(request.module), index: request.function };
        let config = LaunchConfig {
            grid: request.grid,
            block: request.block,
            shared_bytes: request.shared_bytes,
            cooperative: false,
            params: request.parameters.to_vec(),
            attributes: graph::attributes(request.attributes),
        };
        check_launch(&config)?;
        self.issuing()?.launch(StreamId::from_wire(request.stream), function, config).map_err(failure)
    }

    fn occupancy_blocks(&mut self, _thread: u32, request: OccupancyBlocks, reply: ReplyTo<OccupancyBlocksReply>) {
        let function = FunctionRef { module: ModuleId(request.module), index: request.function };
        let (block, shared, flags) = (request.block, request.shared_bytes, request.flags);
        let blocks = self.active().and_then(|d| d.occupancy_blocks(function, block, shared, flags).map_err(failure));
        reply.send(blocks.map(|blocks| OccupancyBlocksReply { blocks }));
    }

    fn occupancy_shared(&mut self, _thread: u32, request: OccupancyShared, reply: ReplyTo<OccupancySharedReply>) {
        let function = FunctionRef { module: ModuleId(request.module), index: request.function };
        let (blocks, block) = (request.blocks, request.block);
        let bytes = self.active().and_then(|d| d.occupancy_shared(function, blocks, block).map_err(failure));
        reply.send(bytes.map(|bytes| OccupancySharedReply { bytes }));
    }

    fn occupancy_clusters(&mut self, _thread: u32, request: OccupancyClusters, reply: ReplyTo<OccupancyClustersReply>) {
        let function = FunctionRef { module: ModuleId(request.module), index: request.function };
        let config = LaunchConfig {
            grid: request.grid,
            block: request.block,
            shared_bytes: request.shared_bytes,
            cooperative: false,
            params: Vec::new(),
            attributes: graph::attributes(request.attributes),
        };
        let potential = request.potential != 0;
        let count = self.active().and_then(|d| d.occupancy_clusters(function, config, potential).map_err(failure));
        reply.send(count.map(|count| OccupancyClustersReply { count }));
    }

    fn tensor_map_encode(&mut self, _thread: u32, request: TensorMapEncode, reply: ReplyTo<TensorMapEncodeReply>) {
        if !request.map.is_whole() {
            return reply
                .send(Err(Failure::new(cuda::ERROR_INVALID_VALUE, "a tensor map's list has the wrong length")));
        }
        let encoded = self.active().and_then(|device| device.encode_tensor_map(&request.map).map_err(failure));
        reply.send(encoded.map(|encoded| TensorMapEncodeReply { encoded: Blob(encoded.to_vec()) }));
    }

    fn tensor_map_replace_address(
        &mut self,
        _thread: u32,
        request: TensorMapReplaceAddress<'_>,
        reply: ReplyTo<TensorMapReplaceAddressReply>,
    ) {
        let Ok(encoded) = request.encoded.try_into() else {
            return reply.send(Err(Failure::new(cuda::ERROR_INVALID_VALUE, "a tensor map has 128 bytes")));
        };
        let moved = self.active().and_then(|d| d.move_tensor_map(encoded, request.address).map_err(failure));
        reply.send(moved.map(|encoded| TensorMapReplaceAddressReply { encoded: Blob(encoded.to_vec()) }));
    }

    fn graph_instantiate(&mut self, _thread: u32, request: GraphInstantiate, reply: ReplyTo<GraphInstantiateReply>) {
        let (id, nodes) = (GraphId(request.graph), graph::nodes(request.nodes));
        if let Err(failure) = nodes.iter().try_for_each(|node| check_work(&node.work)) {
            return reply.send(Err(failure));
        }
        let bytes = graph::nodes_bytes(&nodes);
        if nodes.iter().any(|node| node.work.asks_the_host()) {
            self.host.owe_always();
        }
        let host: Arc<dyn HostSide> = Arc::clone(&self.host) as Arc<dyn HostSide>;
        let made = self.make_graph(id.0, bytes, |device| device.instantiate_graph(id, request.flags, nodes, host));
        reply.send(made.map(|()| GraphInstantiateReply));
    }

    fn graph_update(&mut self, _thread: u32, request: GraphUpdate) -> Result<(), Failure> {
        let changes = graph::changes(request.changes);
        changes.iter().try_for_each(|(_, _, work)| check_work(work))?;
        let bytes: Vec<_> = changes.iter().map(|(place, _, work)| (*place, graph::work_bytes(work))).collect();
        self.change_graph(request.graph, &bytes, |device| device.update_graph(GraphId(request.graph), changes))
    }

    fn graph_launch(&mut self, _thread: u32, request: GraphLaunch) -> Result<(), Failure> {
        let stream = StreamId::from_wire(request.stream);
        self.issuing()?.launch_graph(GraphId(request.graph), stream).map_err(failure)
    }

    fn graph_upload(&mut self, _thread: u32, request: GraphUpload) -> Result<(), Failure> {
        let stream = StreamId::from_wire(request.stream);
        self.active()?.upload_graph(GraphId(request.graph), stream).map_err(failure)
    }

    fn graph_destroy(&mut self, _thread: u32, request: GraphDestroy) -> Result<(), Failure> {
        self.end_graph(request.graph)
    }

    fn host_function(&mut self, _thread: u32, request: HostFunction) -> Result<(), Failure> {
        let (host, function) = (Arc::clone(&self.host), request.function);
        let work = Box::new(move |go_on| host.call(function, go_on));
        let device = self.issuing()?;
        self.host.owe();
        let queued = device.host_work(StreamId::from_wire(request.stream), work);
        queued.inspect_err(|_| self.host.forgive()).map_err(failure)
    }

    fn host_returned(&mut self, _thread: u32, request: HostReturned) -> Result<(), Failure> {
        self.host.returned(request.ticket)
    }

    fn host_supplied(&mut self, _thread: u32, request: HostSupplied<'_>) -> Result<(), Failure> {
        self.host.supplied(request.ticket, request.offset, request.data)
    }

    fn stream_set_attribute(&mut self, _thread: u32, request: StreamSetAttribute<'_>) -> Result<(), Failure> {
        let mut value = [0; 64];
        let given = request.value.get(..64).ok_or_else(|| Failure::code(cuda::ERROR_INVALID_VALUE))?;
        value.copy_from_slice(given);
        let attribute = LaunchAttribute { id: request.attribute, value };
        let stream = StreamId::from_wire(request.stream);
        self.active()?.set_stream_attribute(stream, &attribute).map_err(failure)
    }

    fn stream_memory(&mut self, _thread: u32, request: StreamMemory) -> Result<(), Failure> {
        let (stream, operations) = (StreamId::from_wire(request.stream), graph::operations(request.operations));
        check_operations(&operations)?;
        self.issuing()?.memory_operations(stream, operations).map_err(failure)
    }

    fn event_watch(&mut self, _thread: u32, request: EventWatch, reply: ReplyTo<EventWatchReply>) {
        let (outbox, notice) =
            (Arc::clone(&self.outbox), EventPassed { event: request.event, recording: request.recording });
        let charge = match self.memory.hold(EVENT_BYTES) {
            Ok(charge) => charge,
            Err(failure) => return reply.send(Err(failure)),
        };
        let tell = Box::new(move || {
            drop(charge);
            let mut payload = Vec::new();
            notice.put(&mut payload);
            outbox.send(opcode::EVENT_PASSED, 0, &payload);
        });
        let ready = self.active().and_then(|d| d.watch_event(EventId(request.event), tell).map_err(failure));
        reply.send(ready.map(|ready| EventWatchReply { ready: u8::from(ready) }));
    }

    fn stream_create(&mut self, _thread: u32, request: StreamCreate) -> Result<(), Failure> {
        let stream = StreamId(request.stream);
        self.make(STREAM_BYTES, |device| device.create_stream(stream, request.flags, request.priority))
    }

    fn stream_destroy(&mut self, _thread: u32, request: StreamDestroy) -> Result<(), Failure> {
        self.unmake(STREAM_BYTES, |device| device.destroy_stream(StreamId(request.stream)))
    }

    fn stream_synchronize(&mut self, _thread: u32, request: StreamSynchronize, reply: ReplyTo<StreamSynchronizeReply>) {
        let stream = StreamId::from_wire(request.stream);
        later!(self, reply, |device, done| |()| StreamSynchronizeReply, device.synchronize_stream(stream, done));
    }

    fn stream_query(&mut self, _thread: u32, request: StreamQuery, reply: ReplyTo<StreamQueryReply>) {
        if let Some(failed) = self.take_failed() {
            return reply.send(Err(failed));
        }
        let ready =
            self.active().and_then(|device| device.query_stream(StreamId::from_wire(request.stream)).map_err(failure));
        reply.send(ready.map(|ready| StreamQueryReply { ready: u8::from(ready) }));
    }

    fn stream_wait_event(&mut self, _thread: u32, request: StreamWaitEvent) -> Result<(), Failure> {
        let stream = StreamId::from_wire(request.stream);
        self.issuing()?.wait_event(stream, EventId(request.event)).map_err(failure)
    }

    fn event_create(&mut self, _thread: u32, request: EventCreate) -> Result<(), Failure> {
        self.make(EVENT_BYTES, |device| device.create_event(EventId(request.event), request.flags))
    }

    fn event_destroy(&mut self, _thread: u32, request: EventDestroy) -> Result<(), Failure> {
        self.unmake(EVENT_BYTES, |device| device.destroy_event(EventId(request.event)))
    }

    fn event_record(&mut self, _thread: u32, request: EventRecord) -> Result<(), Failure> {
        let stream = StreamId::from_wire(request.stream);
        self.issuing()?.record_event(EventId(request.event), stream).map_err(failure)
    }

    fn event_synchronize(&mut self, _thread: u32, request: EventSynchronize, reply: ReplyTo<EventSynchronizeReply>) {
        let event = EventId(request.event);
        later!(self, reply, |device, done| |()| EventSynchronizeReply, device.synchronize_event(event, done));
    }

    fn event_query(&mut self, _thread: u32, request: EventQuery, reply: ReplyTo<EventQueryReply>) {
        let ready = self.active().and_then(|device| device.query_event(EventId(request.event)).map_err(failure));
        reply.send(ready.map(|ready| EventQueryReply { ready: u8::from(ready) }));
    }

    fn event_elapsed(&mut self, _thread: u32, request: EventElapsed, reply: ReplyTo<EventElapsedReply>) {
        let (start, end) = (EventId(request.start), EventId(request.end));
        let time = self.active().and_then(|device| device.elapsed(start, end).map_err(failure));
        reply.send(time.map(|milliseconds| EventElapsedReply { milliseconds }));
    }

    fn context_synchronize(
        &mut self,
        _thread: u32,
        _request: ContextSynchronize,
        reply: ReplyTo<ContextSynchronizeReply>,
    ) {
        later!(self, reply, |device, done| |()| ContextSynchronizeReply, device.synchronize(done));
    }

    fn empty(&mut self, _thread: u32, _request: Empty, reply: ReplyTo<EmptyReply>) {
        reply.send(Ok(EmptyReply));
    }

    fn empty_posted(&mut self, _thread: u32, _request: EmptyPosted) -> Result<(), Failure> {
        Ok(())
    }

    fn context_reset(&mut self, _thread: u32, _request: ContextReset) -> Result<(), Failure> {
        self.reset();
        Ok(())
    }

    fn print_limit(&mut self, _thread: u32, request: PrintLimit) -> Result<(), Failure> {
        self.active()?.limit_printed(request.bytes.min(MOST_PRINTED_BYTES));
        Ok(())
    }

    fn stack_limit(&mut self, _thread: u32, request: StackLimit, reply: ReplyTo<StackLimitReply>) {
        let (free, _) = self.memory();
        let set = self.active().and_then(|device| device.limit_stack(request.bytes, free).map_err(failure));
        reply.send(set.map(|()| StackLimitReply));
    }

    fn library_open(&mut self, _thread: u32, request: LibraryOpen, reply: ReplyTo<LibraryOpenReply>) {
        let refused = self.active().and_then(|device| device.open_library(request.library).map_err(failure));
        reply.send(refused.map(|numbers| LibraryOpenReply {
            refused: Blob(numbers.into_iter().flat_map(u32::to_le_bytes).collect()),
        }));
    }

    fn library_post(&mut self, _thread: u32, request: LibraryPost<'_>) -> Result<(), Failure> {
        let call = asked((request.library, request.function), request.stream, request.arguments, false);
        let outbox = std::sync::Arc::clone(&self.outbox);
        let name = library_function(request.library, request.function);
        // The program went on believing that this call succeeds: whatever it computes from here on would be wrong.
        let fails = move |text: String| {
            let failed = Failure::new(cuda::ERROR_LAUNCH_FAILED, text);
            send_async_error(&outbox, 0, &failed);
            failed
        };
        let failed = fails.clone();
        let done = Box::new(move |outcome: backend::CudaResult<backend::LibraryAnswer>| {
            if let Ok(answer) = outcome
                && answer.status != 0
            {
                failed(format!("{name} failed with status {}: {}", answer.status, answer.text));
            }
        });
        if let Err(failure) = self.charge_object(request.library, request.function, request.arguments) {
            return Err(fails(format!("{name}: {}", failure.text)));
        }
        let queued = self.issuing()?.call_library(call, done);
        queued.map_err(|error| if error.is_sticky() { failure(error) } else { fails(format!("{name}: {error}")) })
    }

    fn library_call(&mut self, _thread: u32, request: LibraryCall<'_>, reply: ReplyTo<LibraryCallReply>) {
        if let Err(failure) = self.charge_object(request.library, request.function, request.arguments) {
            return reply.send(Err(failure));
        }
        let call = asked((request.library, request.function), request.stream, request.arguments, true);
        later!(
            self,
            reply,
            |device, done| |answer: backend::LibraryAnswer| LibraryCallReply {
                status: answer.status,
                text: answer.text,
                outputs: Blob(answer.outputs),
            },
            device.call_library(call, done)
        );
    }

    fn library_record(&mut self, _thread: u32, request: LibraryRecord<'_>, reply: ReplyTo<LibraryRecordReply>) {
        let call = asked((request.library, request.function), request.stream, request.arguments, true);
        let recording = RecordingId(request.recording);
        if let Err(failure) = self.charge_recording(request.recording, request.arguments.len()) {
            return reply.send(Err(failure));
        }
        let kept = self.active().and_then(|device| device.record_library(recording, call).map_err(failure));
        if kept.as_ref().map_or(true, |answer| answer.status != 0) {
            self.release_recording(request.recording);
        }
        reply.send(kept.map(|answer| LibraryRecordReply { status: answer.status, text: answer.text }));
    }

    fn library_forget(&mut self, _thread: u32, request: LibraryForget) -> Result<(), Failure> {
        self.device.forget_library(RecordingId(request.recording)).map_err(failure)?;
        self.release_recording(request.recording);
        Ok(())
    }
}

/// A launch's lists are no longer than CUDA's are: each stays in memory until it has run.
fn check_launch(config: &LaunchConfig) -> Result<(), Failure> {
    if config.params.len() <= MOST_PARAMETER_BYTES && config.attributes.len() <= MOST_ATTRIBUTES {
        return Ok(());
    }
    Err(Failure::new(cuda::ERROR_INVALID_VALUE, "a launch has more parameters or attributes than a kernel takes"))
}

/// Likewise of operations on words, by the contract of `cuStreamBatchMemOp`.
fn check_operations(operations: &[MemoryOperation]) -> Result<(), Failure> {
    if operations.len() <= MOST_OPERATIONS {
        return Ok(());
    }
    Err(Failure::new(cuda::ERROR_INVALID_VALUE, "there are more than 256 operations on words in one call"))
}

fn check_work(work: &NodeWork) -> Result<(), Failure> {
    match work {
        NodeWork::Kernel { config, .. } => check_launch(config),
        NodeWork::Memory(operations) => check_operations(operations),
        _ => Ok(()),
    }
}

/// A library's function, its stream and its arguments as they came.
fn asked(of: (u32, u32), stream: u64, arguments: &[u8], waits: bool) -> backend::LibraryCall<'_> {
    let (library, function) = of;
    backend::LibraryCall { library, function, stream: StreamId::from_wire(stream), arguments, waits }
}

/// A library function's name.
fn library_function(library: u32, function: u32) -> &'static str {
    sluice_api::libraries::library((library >> 16) as u16)
        .and_then(|library| library.numbered(function))
        .map_or("a library function", |function| function.symbol.as_str())
}
