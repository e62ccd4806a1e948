//! cuSPARSELt.

use super::{Shim, Source, Status};

pub const SOURCE: Source = Source {
    number: 8,
    title: "cuSPARSELt",
    name: "cusparselt",
    shims: &[Shim { soname: "libcusparseLt.so.0", version: 800, node: "" }],
    status: Status { not_initialized: 1, alloc_failed: 2, invalid_value: 3, execution_failed: 6, not_supported: 10 },
    small_handles: false,
    probed: false,
    set_stream: "",
    set_pointer_mode: "",
    functions: "
refused its structures lie in the memory of the program, which a remote library cannot share:
cusparseLtDenseDescriptorInit cusparseLtInit cusparseLtMatDescriptorDestroy cusparseLtMatmul
cusparseLtMatmulAlgGetAttribute cusparseLtMatmulAlgSelectionInit cusparseLtMatmulAlgSetAttribute
cusparseLtMatmulDescSetAttribute cusparseLtMatmulDescriptorInit cusparseLtMatmulGetWorkspace
cusparseLtMatmulPlanDestroy cusparseLtMatmulPlanInit cusparseLtMatmulSearch cusparseLtSpMMACompress2
cusparseLtSpMMACompressedSize2 cusparseLtStructuredDescriptorInit
",
};
