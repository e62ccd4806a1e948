//! The libraries' words for their statuses.

/// Name and meaning of a status of cuBLAS and cuBLASLt.
pub fn cublas(status: u32) -> (&'static str, &'static str) {
    match status {
        0 => ("CUBLAS_STATUS_SUCCESS", "the operation completed successfully"),
        1 => ("CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"),
        3 => ("CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"),
        7 => ("CUBLAS_STATUS_INVALID_VALUE", "an unsupported value or parameter was passed to the function"),
        8 => ("CUBLAS_STATUS_ARCH_MISMATCH", "the function requires a feature absent from the device"),
        11 => ("CUBLAS_STATUS_MAPPING_ERROR", "an access to GPU memory space failed"),
        13 => ("CUBLAS_STATUS_EXECUTION_FAILED", "the function failed to launch on the GPU"),
        14 => ("CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"),
        15 => ("CUBLAS_STATUS_NOT_SUPPORTED", "the functionality requested is not supported"),
        16 => ("CUBLAS_STATUS_LICENSE_ERROR", "the functionality requires a license"),
        _ => ("CUBLAS_STATUS_UNKNOWN", "unknown status"),
    }
}

/// Name and meaning of a status of cuSPARSE.
pub fn cusparse(status: u32) -> (&'static str, &'static str) {
    match status {
        0 => ("CUSPARSE_STATUS_SUCCESS", "success"),
        1 => ("CUSPARSE_STATUS_NOT_INITIALIZED", "initialization error"),
        2 => ("CUSPARSE_STATUS_ALLOC_FAILED", "out of memory"),
        3 => ("CUSPARSE_STATUS_INVALID_VALUE", "invalid value"),
        4 => ("CUSPARSE_STATUS_ARCH_MISMATCH", "architecture mismatch"),
        6 => ("CUSPARSE_STATUS_EXECUTION_FAILED", "kernel launch failure"),
        7 => ("CUSPARSE_STATUS_INTERNAL_ERROR", "internal error"),
        8 => ("CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED", "matrix type not supported"),
        9 => ("CUSPARSE_STATUS_ZERO_PIVOT", "zero pivot"),
        10 => ("CUSPARSE_STATUS_NOT_SUPPORTED", "operation not supported"),
        11 => ("CUSPARSE_STATUS_INSUFFICIENT_RESOURCES", "insufficient resources"),
        _ => ("CUSPARSE_STATUS_UNKNOWN", "unknown status"),
    }
}

/// Name and meaning of a status of cuDNN 9.
pub fn cudnn(status: u32) -> (&'static str, &'static str) {
    match status {
        0 => ("CUDNN_STATUS_SUCCESS", "CUDNN_STATUS_SUCCESS"),
        1001 => ("CUDNN_STATUS_NOT_INITIALIZED", "CUDNN_STATUS_NOT_INITIALIZED"),
        2000..=2999 => ("CUDNN_STATUS_BAD_PARAM", "CUDNN_STATUS_BAD_PARAM"),
        3000..=3999 => ("CUDNN_STATUS_NOT_SUPPORTED", "CUDNN_STATUS_NOT_SUPPORTED"),
        4000..=4999 => ("CUDNN_STATUS_INTERNAL_ERROR", "CUDNN_STATUS_INTERNAL_ERROR"),
        5000..=5999 => ("CUDNN_STATUS_EXECUTION_FAILED", "CUDNN_STATUS_EXECUTION_FAILED"),
        _ => ("CUDNN_STATUS_UNKNOWN", "CUDNN_UNKNOWN_STATUS"),
    }
}

/// Meaning of a status of NCCL.
pub fn nccl(status: u32) -> &'static str {
    match status {
        0 => "no error",
        1 => "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        2 => "unhandled system error (run with NCCL_DEBUG=INFO for details)",
        3 => "internal error - please report this issue to the NCCL developers",
        4 => "invalid argument (run with NCCL_DEBUG=WARN for details)",
        5 => "invalid usage (run with NCCL_DEBUG=WARN for details)",
        6 => "remote process exited or there was a network error",
        7 => "NCCL operation in progress",
        _ => "unknown result code",
    }
}

/// Name and meaning of a result of CUPTI's, of those that are given here.
pub fn cupti(result: u32) -> (&'static str, &'static str) {
    match result {
        0 => ("CUPTI_SUCCESS", "no error"),
        1 => ("CUPTI_ERROR_INVALID_PARAMETER", "one or more of the parameters is invalid"),
        8 => ("CUPTI_ERROR_OUT_OF_MEMORY", "there is not enough memory for what was asked"),
        15 => ("CUPTI_ERROR_NOT_INITIALIZED", "CUPTI could not be initialized"),
        27 => ("CUPTI_ERROR_NOT_SUPPORTED", "a remote GPU cannot be profiled from here"),
        _ => ("CUPTI_ERROR_UNKNOWN", "an unknown internal error has occurred"),
    }
}
