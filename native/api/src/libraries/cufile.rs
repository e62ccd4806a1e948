//! cuFile. What reads and writes answers how many bytes, or its error as a negative number.

use super::{Shim, Source, Status};

pub const SOURCE: Source = Source {
    number: 12,
    title: "cuFile",
    name: "cufile",
    shims: &[Shim { soname: "libcufile.so.0", version: 1000, node: "" }],
    status: Status {
        not_initialized: 5001,
        alloc_failed: 5030,
        invalid_value: 5022,
        execution_failed: 5030,
        not_supported: 5007,
    },
    small_handles: false,
    in_place: false,
    probed: true,
    set_pointer_mode: "",
    functions: "
refused files of this machine cannot be read by a remote GPU directly; read them and copy:
cuFileBufDeregister cuFileBufRegister cuFileHandleDeregister cuFileHandleRegister cuFileRead=-5007 cuFileWrite=-5007
",
};
