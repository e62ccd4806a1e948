//! The operations of the wire protocol. Opcodes are stable: a retired one is never used again.

/// Type of one field on the wire; little-endian, without padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    U8,
    U32,
    U64,
    I32,
    F32,
    /// 32 bytes: a SHA-256.
    Hash,
    /// Three u32: x, y, z.
    Dim3,
    /// u32 length and bytes; in requests borrowed from the frame.
    Bytes,
    /// u32 length and UTF-8; in requests borrowed from the frame.
    Text,
    /// A hand-written type of `protocol::types`.
    Named(&'static str),
}

/// Whether the client waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Travel {
    /// Sent and not waited for; a failure comes back as an `AsyncError`.
    Posted,
    /// Answered by one `Reply`.
    Call,
}

/// One operation: `request` goes to gpud, `reply` comes back (calls only).
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    pub opcode: u16,
    pub name: &'static str,
    pub travel: Travel,
    pub request: &'static [(&'static str, Type)],
    pub reply: &'static [(&'static str, Type)],
    pub doc: &'static str,
}

const fn posted(
    opcode: u16,
    name: &'static str,
    request: &'static [(&'static str, Type)],
    doc: &'static str,
) -> Operation {
    Operation { opcode, name, travel: Travel::Posted, request, reply: &[], doc }
}

const fn call(
    opcode: u16,
    name: &'static str,
    request: &'static [(&'static str, Type)],
    reply: &'static [(&'static str, Type)],
    doc: &'static str,
) -> Operation {
    Operation { opcode, name, travel: Travel::Call, request, reply, doc }
}

use Type::{Bytes, Dim3, F32, Hash, I32, Named, Text, U8, U32, U64};

/// Every operation. Handles (`stream`, `event`, `module`) are numbers chosen by the client and never reused; stream 0
/// is the default stream. Addresses lie in the session's range.
pub const OPERATIONS: &[Operation] = &[
    // Session (control opcodes, below 256)
    call(
        6,
        "Rebind",
        &[("token", Text)],
        &[("credit", U64), ("memory_bytes", U64), ("lease_id", Named("String"))],
        "A parked session takes up a new lease on the same worker. The token must carry the session's own key.",
    ),
    call(
        7,
        "PeerLink",
        &[("nonce", Text)],
        &[],
        "This session's device reaches the memory of another session's from now on: of this client, on a device of this server \
         that the welcome names as a peer. The nonce of the other one's welcome says which, and that the client has it. \
         Refused where it has been asked for before.",
    ),
    posted(
        14,
        "PeerMark",
        &[("mark", U64), ("stream", U64)],
        "Another device of the client will ask when all that the stream holds has run. A mark is a number that is used once.",
    ),
    posted(
        15,
        "PeerWait",
        &[("stream", U64), ("nonce", Text), ("mark", U64)],
        "Later work of the stream waits for a mark of the linked session with this nonce; it waits no more when that session \
         has ended.",
    ),
    posted(9, "CreditReturn", &[("bytes", U64)], "Idle credit goes back to the lease, as the answer to a recall."),
    posted(20, "Goodbye", &[], "The client process ends in order; the session is closed and nothing is kept."),
    // Bulk copies: the data travel on lanes
    call(
        96,
        "BulkIn",
        &[("transfer", U64), ("address", U64), ("stream", U64), ("bytes", U64)],
        &[],
        "Host to device, in stream order, by pieces on lanes; answered when all of it lies in device memory.",
    ),
    call(
        97,
        "BulkOut",
        &[("transfer", U64), ("address", U64), ("stream", U64), ("bytes", U64)],
        &[],
        "Device to host, by pieces on lanes; answered when its turn in stream order has come, then the pieces flow.",
    ),
    posted(98, "BulkTaken", &[("transfer", U64)], "All of a copy to the host is there, or is not wanted any more."),
    // Copies from and to page-locked memory that the worker has mapped: places in the client's memory file
    call(
        101,
        "PinnedOpen",
        &[("offset", U64), ("bytes", U64)],
        &[],
        "Maps whole pages of the client's memory file, for copies; refused where the lease has too many already.",
    ),
    posted(102, "PinnedClose", &[("offset", U64)], "No further copy uses what was opened there."),
    call(
        103,
        "PinnedIn",
        &[("address", U64), ("stream", U64), ("offset", U64), ("bytes", U64)],
        &[],
        "Host to device, in stream order, from what is open of the memory file; answered when it is done.",
    ),
    call(
        104,
        "PinnedOut",
        &[("address", U64), ("stream", U64), ("offset", U64), ("bytes", U64)],
        &[],
        "Device to host, as `PinnedIn`.",
    ),
    // Memory
    posted(
        256,
        "MemAlloc",
        &[("address", U64), ("bytes", U64)],
        "Maps memory at an address that the client chose, within its credit (bytes are exact).",
    ),
    posted(
        257,
        "MemFree",
        &[("address", U64)],
        "Waits for the device's work, unmaps; the bytes stay the client's credit.",
    ),
    call(
        258,
        "MemGrow",
        &[("bytes", U64)],
        &[("granted", U64)],
        "Adds at least `bytes` to the credit, else fails with CUDA_ERROR_OUT_OF_MEMORY at once.",
    ),
    posted(
        259,
        "CopyToDevice",
        &[("address", U64), ("stream", U64), ("data", Bytes)],
        "Host to device, in stream order; the data were copied before the program's call returned.",
    ),
    call(
        260,
        "CopyFromDevice",
        &[("address", U64), ("stream", U64), ("bytes", U64)],
        &[("data", Bytes)],
        "Device to host, after the stream's work so far.",
    ),
    posted(
        261,
        "CopyOnDevice",
        &[("target", U64), ("source", U64), ("bytes", U64), ("stream", U64)],
        "Device to device, in stream order.",
    ),
    posted(
        262,
        "Fill",
        &[("address", U64), ("pattern", U32), ("width", U8), ("count", U64), ("stream", U64)],
        "Sets `count` elements of `width` (1, 2 or 4) bytes to the pattern, in stream order.",
    ),
    call(263, "MemInfo", &[], &[("free", U64), ("total", U64)], "Free and total bytes of the lease (not the card)."),
    posted(
        264,
        "CopyRowsOnDevice",
        &[
            ("target", U64),
            ("target_pitch", U64),
            ("source", U64),
            ("source_pitch", U64),
            ("width", U64),
            ("height", U64),
            ("stream", U64),
        ],
        "Device to device, `height` rows of `width` bytes, in stream order.",
    ),
    posted(
        265,
        "CopyRowsToDevice",
        &[("address", U64), ("pitch", U64), ("width", U64), ("stream", U64), ("data", Bytes)],
        "Host to device: `data` are rows of `width` bytes without gaps, `pitch` bytes apart on the device.",
    ),
    posted(
        266,
        "FillRows",
        &[
            ("address", U64),
            ("pitch", U64),
            ("pattern", U32),
            ("element", U8),
            ("width", U64),
            ("height", U64),
            ("stream", U64),
        ],
        "As `Fill`, `height` rows of `width` elements, `pitch` bytes apart.",
    ),
    call(
        267,
        "LeaseProcesses",
        &[],
        &[("processes", Named("Vec<LeaseProcess>"))],
        "The client processes that have a session on the lease, each with the bytes that count for it.",
    ),
    // The program's own virtual memory management
    call(
        400,
        "PhysicalCreate",
        &[("handle", U64), ("bytes", U64)],
        &[],
        "Physical memory without an address, within the credit (cuMemCreate).",
    ),
    posted(
        401,
        "PhysicalRelease",
        &[("handle", U64)],
        "Ends it; it is mapped nowhere. The bytes stay the client's credit.",
    ),
    call(
        402,
        "PhysicalMap",
        &[("address", U64), ("bytes", U64), ("handle", U64)],
        &[],
        "Maps the memory from its beginning; it is not accessible yet (cuMemMap).",
    ),
    call(
        403,
        "PhysicalUnmap",
        &[("address", U64), ("bytes", U64)],
        &[],
        "Unmaps whole mappings, after all the session's work so far (cuMemUnmap).",
    ),
    call(
        404,
        "PhysicalAccess",
        &[("address", U64), ("bytes", U64), ("accessible", U8)],
        &[],
        "Makes whole mappings accessible for reading and writing, or not at all (cuMemSetAccess).",
    ),
    // Modules
    call(
        288,
        "ModuleQuery",
        &[("module", U64), ("hash", Hash), ("heap", U64)],
        &[("known", U8), ("info", Named("ModuleInfo"))],
        "What clients ask that do not know ModuleFind: known = 0 asks for the image. \
         `heap`: the size of the heap of `malloc` in kernels that the program wishes, used by the first module with it.",
    ),
    call(
        289,
        "ModuleLoad",
        &[("module", U64), ("hash", Hash), ("heap", U64), ("image", Bytes)],
        &[("info", Named("ModuleInfo"))],
        "Loads a module (PTX text or a binary image) and keeps the image under its SHA-256, beyond the session.",
    ),
    posted(290, "ModuleUnload", &[("module", U64)], "Ends a module."),
    posted(
        291,
        "FunctionSetAttribute",
        &[("module", U64), ("function", U32), ("attribute", U32), ("value", I32)],
        "cuFuncSetAttribute; the client has checked attribute and value.",
    ),
    call(
        292,
        "PtxCheck",
        &[("ptx", Bytes)],
        &[],
        "Whether PTX that is to be linked is valid by itself, asked where the device reads PTX itself (cuLinkAddData).",
    ),
    call(
        293,
        "ModuleFind",
        &[("module", U64), ("hash", Hash), ("proof", Hash), ("heap", U64)],
        &[("known", U8), ("info", Named("ModuleInfo"))],
        "Loads a module whose image this server keeps under its SHA-256, whoever sent it; known = 0 asks for the \
         image. `proof` is a SHA-256 of `sluice-image-1`, the session's nonce and the image: who knows the hash alone \
         gets nothing.",
    ),
    // Work
    posted(
        304,
        "Launch",
        &[
            ("module", U64),
            ("function", U32),
            ("grid", Dim3),
            ("block", Dim3),
            ("shared_bytes", U32),
            ("flags", U32),
            ("stream", U64),
            ("parameters", Bytes),
        ],
        "Starts function number `function` of the module's list; parameters are laid out as the kernel's parameter \
         buffer. flags: bit 0 = cooperative.",
    ),
    // Streams and events
    posted(
        320,
        "StreamCreate",
        &[("stream", U64), ("flags", U32), ("priority", I32)],
        "flags as in cuStreamCreate (1 = does not wait for the default stream).",
    ),
    posted(321, "StreamDestroy", &[("stream", U64)], "The stream's work is finished first, without waiting here."),
    call(322, "StreamSynchronize", &[("stream", U64)], &[], "Answered when the stream's work so far is done."),
    call(323, "StreamQuery", &[("stream", U64)], &[("ready", U8)], "Answered at once."),
    posted(
        324,
        "StreamWaitEvent",
        &[("stream", U64), ("event", U64)],
        "Later work of the stream waits for the event's last record.",
    ),
    posted(
        325,
        "HostFunction",
        &[("stream", U64), ("function", U64)],
        "When the stream has come to this place the client is told with `HostReached`; later work of the stream waits \
         for its `HostReturned`.",
    ),
    posted(327, "HostReturned", &[("ticket", U64)], "The function of a `HostReached` has returned."),
    posted(
        328,
        "StreamSetAttribute",
        &[("stream", U64), ("attribute", U32), ("value", Bytes)],
        "cuStreamSetAttribute: the 64 bytes of the value.",
    ),
    posted(
        329,
        "StreamMemory",
        &[("stream", U64), ("operations", Named("Vec<MemoryOperation>"))],
        "cuStreamBatchMemOp: waits for and writes of words in device memory, in stream order.",
    ),
    posted(
        332,
        "HostSupplied",
        &[("ticket", U64), ("offset", U64), ("data", Bytes)],
        "Part of the data that a `HostWanted` asked for, from the front to the end.",
    ),
    posted(336, "EventCreate", &[("event", U64), ("flags", U32)], "flags as in cuEventCreate (2 = no timing)."),
    posted(337, "EventDestroy", &[("event", U64)], "Ends an event."),
    posted(338, "EventRecord", &[("event", U64), ("stream", U64)], "Records the event in the stream."),
    call(339, "EventSynchronize", &[("event", U64)], &[], "Answered when the event's last record is reached."),
    call(340, "EventQuery", &[("event", U64)], &[("ready", U8)], "Answered at once."),
    call(
        341,
        "EventElapsed",
        &[("start", U64), ("end", U64)],
        &[("milliseconds", F32)],
        "Time between two records; CUDA_ERROR_NOT_READY (600) while one is not reached.",
    ),
    call(
        342,
        "EventWatch",
        &[("event", U64), ("recording", U64)],
        &[("ready", U8)],
        "Answered at once; when the event is not ready the client is told with `EventPassed` as soon as it is.",
    ),
    call(352, "ContextSynchronize", &[], &[], "Answered when all the session's work so far is done."),
    call(353, "Empty", &[], &[], "Does nothing: measures the way there and back."),
    posted(354, "EmptyPosted", &[], "Does nothing: measures the cost of a posted call."),
    posted(355, "ContextReset", &[], "The context has ended with all that was in it: so has the heap of `malloc`."),
    posted(
        356,
        "PrintLimit",
        &[("bytes", U64)],
        "Bytes of the buffer of `printf` in kernels, from the next launch on (CU_LIMIT_PRINTF_FIFO_SIZE).",
    ),
    call(
        357,
        "StackLimit",
        &[("bytes", U64)],
        &[],
        "Bytes of stack that each thread of a kernel has, from the next launch on (CU_LIMIT_STACK_SIZE); out of memory \
         where the lease does not have them for all threads that the device runs at once.",
    ),
    // Launches with attributes, occupancy
    posted(
        432,
        "LaunchWith",
        &[
            ("module", U64),
            ("function", U32),
            ("grid", Dim3),
            ("block", Dim3),
            ("shared_bytes", U32),
            ("stream", U64),
            ("attributes", Named("Vec<LaunchAttribute>")),
            ("parameters", Bytes),
        ],
        "As `Launch`, with cuLaunchKernelEx's attributes.",
    ),
    call(
        433,
        "OccupancyBlocks",
        &[("module", U64), ("function", U32), ("block", U32), ("shared_bytes", U64), ("flags", U32)],
        &[("blocks", U32)],
        "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags.",
    ),
    call(
        434,
        "OccupancyShared",
        &[("module", U64), ("function", U32), ("blocks", U32), ("block", U32)],
        &[("bytes", U64)],
        "cuOccupancyAvailableDynamicSMemPerBlock.",
    ),
    call(
        435,
        "OccupancyClusters",
        &[
            ("module", U64),
            ("function", U32),
            ("grid", Dim3),
            ("block", Dim3),
            ("shared_bytes", U32),
            ("attributes", Named("Vec<LaunchAttribute>")),
            ("potential", U8),
        ],
        &[("count", U32)],
        "cuOccupancyMaxActiveClusters, or with `potential` cuOccupancyMaxPotentialClusterSize.",
    ),
    call(
        436,
        "TensorMapEncode",
        &[("map", Named("TensorMap"))],
        &[("encoded", Bytes)],
        "cuTensorMapEncodeTiled or cuTensorMapEncodeIm2col. Only answered by a gpud with the feature `tensor-maps`.",
    ),
    call(
        437,
        "TensorMapReplaceAddress",
        &[("encoded", Bytes), ("address", U64)],
        &[("encoded", Bytes)],
        "cuTensorMapReplaceAddress. Only answered by a gpud with the feature `tensor-maps`.",
    ),
    // Graphs
    call(
        448,
        "GraphInstantiate",
        &[("graph", U64), ("flags", U64), ("nodes", Named("Vec<GraphNode>"))],
        &[],
        "Makes an executable graph of nodes; flags as in cuGraphInstantiateWithFlags.",
    ),
    posted(
        449,
        "GraphUpdate",
        &[("graph", U64), ("changes", Named("Vec<GraphChange>"))],
        "Nodes of an executable graph get other parameters for later launches; the client has checked them.",
    ),
    posted(450, "GraphLaunch", &[("graph", U64), ("stream", U64)], "Runs an executable graph in stream order."),
    posted(451, "GraphUpload", &[("graph", U64), ("stream", U64)], "cuGraphUpload."),
    posted(452, "GraphDestroy", &[("graph", U64)], "Ends an executable graph; what runs of it runs to its end."),
    // Libraries beside the driver: `library` is its number and, above bit 16, that of its SONAME; `function` the hash
    // of its name; `arguments` as in `protocol::library`
    call(
        512,
        "LibraryOpen",
        &[("library", U32)],
        &[("refused", Bytes)],
        "Loads a library; answers the functions (u32 each) that this server cannot execute, or why there is none.",
    ),
    posted(
        513,
        "LibraryPost",
        &[("library", U32), ("function", U32), ("stream", U64), ("arguments", Bytes)],
        "A call that the client can prove to be accepted; should it fail all the same, the context fails as by a kernel.",
    ),
    call(
        514,
        "LibraryCall",
        &[("library", U32), ("function", U32), ("stream", U64), ("arguments", Bytes)],
        &[("status", U32), ("text", Named("String")), ("outputs", Bytes)],
        "A call whose status or outputs are waited for; outputs follow one another in the order of their parameters.",
    ),
    call(
        515,
        "LibraryRecord",
        &[("recording", U64), ("library", U32), ("function", U32), ("stream", U64), ("arguments", Bytes)],
        &[("status", U32), ("text", Named("String"))],
        "A call for graphs: checked and kept under this number with what its objects say now, and not run.",
    ),
    posted(516, "LibraryForget", &[("recording", U64)], "No graph is made of this recording any more."),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn opcodes_and_names_are_unique() {
        let codes: BTreeSet<u16> = OPERATIONS.iter().map(|o| o.opcode).collect();
        let names: BTreeSet<&str> = OPERATIONS.iter().map(|o| o.name).collect();
        assert_eq!(codes.len(), OPERATIONS.len());
        assert_eq!(names.len(), OPERATIONS.len());
    }

    #[test]
    fn posted_operations_have_no_reply() {
        assert!(OPERATIONS.iter().all(|o| o.travel == Travel::Call || o.reply.is_empty()));
    }
}
