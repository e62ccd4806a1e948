//! The thread's last error, and what errors are called.

use crate::message;
use sluice_protocol::cuda;
use std::cell::Cell;
use std::ffi::c_char;

thread_local! {
    static LAST: Cell<u32> = const { Cell::new(0) };
}

/// Keeps a failure for `cudaGetLastError`. That an event or a stream is not ready is none. CUDA keeps it all the same, and
/// who asks has to take it away again; CuPy does not, and CUB, which it calls next, then leaves kernels out.
pub(crate) fn record(code: u32) {
    if code != cuda::ERROR_NOT_READY {
        LAST.set(code);
    }
}

/// An error after which nothing works any more is told by every call, and by this one once after each.
pub unsafe fn cudaGetLastError() -> u32 {
    LAST.replace(0)
}

pub unsafe fn cudaPeekAtLastError() -> u32 {
    LAST.get()
}

const UNKNOWN: &str = "unrecognized error code";

pub unsafe fn cudaGetErrorName(error: u32) -> *const c_char {
    message::interned(name(error).unwrap_or(UNKNOWN)).as_ptr()
}

/// The sentence of this thread's failure when there is one; else what the driver says, else the name in words.
pub unsafe fn cudaGetErrorString(error: u32) -> *const c_char {
    if let Some(text) = message::of_code(error) {
        return text.as_ptr();
    }
    if let Some(text) = cuda::description(error) {
        return message::interned(text).as_ptr();
    }
    message::interned(&name(error).map_or(UNKNOWN.to_owned(), words)).as_ptr()
}

/// `cudaErrorInvalidPitchValue` in words: "invalid pitch value".
fn words(name: &str) -> String {
    let mut text = String::new();
    for letter in name.trim_start_matches("cudaError").chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push(' ');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

/// The name of a cudaError_t (`driver_types.h` of CUDA 13).
fn name(code: u32) -> Option<&'static str> {
    NAMES.binary_search_by_key(&code, |entry| entry.0).ok().map(|index| NAMES[index].1)
}

#[rustfmt::skip]
const NAMES: &[(u32, &str)] = &[
    (0, "cudaSuccess"), (1, "cudaErrorInvalidValue"), (2, "cudaErrorMemoryAllocation"),
    (3, "cudaErrorInitializationError"), (4, "cudaErrorCudartUnloading"), (5, "cudaErrorProfilerDisabled"),
    (6, "cudaErrorProfilerNotInitialized"), (7, "cudaErrorProfilerAlreadyStarted"),
    (8, "cudaErrorProfilerAlreadyStopped"), (9, "cudaErrorInvalidConfiguration"),
    (10, "cudaErrorVersionTranslation"), (12, "cudaErrorInvalidPitchValue"), (13, "cudaErrorInvalidSymbol"),
    (16, "cudaErrorInvalidHostPointer"), (17, "cudaErrorInvalidDevicePointer"), (18, "cudaErrorInvalidTexture"),
    (19, "cudaErrorInvalidTextureBinding"), (20, "cudaErrorInvalidChannelDescriptor"),
    (21, "cudaErrorInvalidMemcpyDirection"), (22, "cudaErrorAddressOfConstant"),
    (23, "cudaErrorTextureFetchFailed"), (24, "cudaErrorTextureNotBound"), (25, "cudaErrorSynchronizationError"),
    (26, "cudaErrorInvalidFilterSetting"), (27, "cudaErrorInvalidNormSetting"),
    (28, "cudaErrorMixedDeviceExecution"), (31, "cudaErrorNotYetImplemented"), (32, "cudaErrorMemoryValueTooLarge"),
    (34, "cudaErrorStubLibrary"), (35, "cudaErrorInsufficientDriver"), (36, "cudaErrorCallRequiresNewerDriver"),
    (37, "cudaErrorInvalidSurface"), (43, "cudaErrorDuplicateVariableName"), (44, "cudaErrorDuplicateTextureName"),
    (45, "cudaErrorDuplicateSurfaceName"), (46, "cudaErrorDevicesUnavailable"),
    (49, "cudaErrorIncompatibleDriverContext"), (52, "cudaErrorMissingConfiguration"),
    (53, "cudaErrorPriorLaunchFailure"), (65, "cudaErrorLaunchMaxDepthExceeded"),
    (66, "cudaErrorLaunchFileScopedTex"), (67, "cudaErrorLaunchFileScopedSurf"), (68, "cudaErrorSyncDepthExceeded"),
    (69, "cudaErrorLaunchPendingCountExceeded"), (98, "cudaErrorInvalidDeviceFunction"), (100, "cudaErrorNoDevice"),
    (101, "cudaErrorInvalidDevice"), (102, "cudaErrorDeviceNotLicensed"),
    (103, "cudaErrorSoftwareValidityNotEstablished"), (127, "cudaErrorStartupFailure"),
    (200, "cudaErrorInvalidKernelImage"), (201, "cudaErrorDeviceUninitialized"),
    (205, "cudaErrorMapBufferObjectFailed"), (206, "cudaErrorUnmapBufferObjectFailed"),
    (207, "cudaErrorArrayIsMapped"), (208, "cudaErrorAlreadyMapped"), (209, "cudaErrorNoKernelImageForDevice"),
    (210, "cudaErrorAlreadyAcquired"), (211, "cudaErrorNotMapped"), (212, "cudaErrorNotMappedAsArray"),
    (213, "cudaErrorNotMappedAsPointer"), (214, "cudaErrorECCUncorrectable"), (215, "cudaErrorUnsupportedLimit"),
    (216, "cudaErrorDeviceAlreadyInUse"), (217, "cudaErrorPeerAccessUnsupported"), (218, "cudaErrorInvalidPtx"),
    (219, "cudaErrorInvalidGraphicsContext"), (220, "cudaErrorNvlinkUncorrectable"),
    (221, "cudaErrorJitCompilerNotFound"), (222, "cudaErrorUnsupportedPtxVersion"),
    (223, "cudaErrorJitCompilationDisabled"), (224, "cudaErrorUnsupportedExecAffinity"),
    (225, "cudaErrorUnsupportedDevSideSync"), (226, "cudaErrorContained"),
    (227, "cudaErrorInsufficientLoaderVersion"), (300, "cudaErrorInvalidSource"), (301, "cudaErrorFileNotFound"),
    (302, "cudaErrorSharedObjectSymbolNotFound"), (303, "cudaErrorSharedObjectInitFailed"),
    (304, "cudaErrorOperatingSystem"), (400, "cudaErrorInvalidResourceHandle"), (401, "cudaErrorIllegalState"),
    (402, "cudaErrorLossyQuery"), (500, "cudaErrorSymbolNotFound"), (600, "cudaErrorNotReady"),
    (700, "cudaErrorIllegalAddress"), (701, "cudaErrorLaunchOutOfResources"), (702, "cudaErrorLaunchTimeout"),
    (703, "cudaErrorLaunchIncompatibleTexturing"), (704, "cudaErrorPeerAccessAlreadyEnabled"),
    (705, "cudaErrorPeerAccessNotEnabled"), (708, "cudaErrorSetOnActiveProcess"),
    (709, "cudaErrorContextIsDestroyed"), (710, "cudaErrorAssert"), (711, "cudaErrorTooManyPeers"),
    (712, "cudaErrorHostMemoryAlreadyRegistered"), (713, "cudaErrorHostMemoryNotRegistered"),
    (714, "cudaErrorHardwareStackError"), (715, "cudaErrorIllegalInstruction"), (716, "cudaErrorMisalignedAddress"),
    (717, "cudaErrorInvalidAddressSpace"), (718, "cudaErrorInvalidPc"), (719, "cudaErrorLaunchFailure"),
    (720, "cudaErrorCooperativeLaunchTooLarge"), (721, "cudaErrorTensorMemoryLeak"), (800, "cudaErrorNotPermitted"),
    (801, "cudaErrorNotSupported"), (802, "cudaErrorSystemNotReady"), (803, "cudaErrorSystemDriverMismatch"),
    (804, "cudaErrorCompatNotSupportedOnDevice"), (805, "cudaErrorMpsConnectionFailed"),
    (806, "cudaErrorMpsRpcFailure"), (807, "cudaErrorMpsServerNotReady"), (808, "cudaErrorMpsMaxClientsReached"),
    (809, "cudaErrorMpsMaxConnectionsReached"), (810, "cudaErrorMpsClientTerminated"),
    (811, "cudaErrorCdpNotSupported"), (812, "cudaErrorCdpVersionMismatch"),
    (900, "cudaErrorStreamCaptureUnsupported"), (901, "cudaErrorStreamCaptureInvalidated"),
    (902, "cudaErrorStreamCaptureMerge"), (903, "cudaErrorStreamCaptureUnmatched"),
    (904, "cudaErrorStreamCaptureUnjoined"), (905, "cudaErrorStreamCaptureIsolation"),
    (906, "cudaErrorStreamCaptureImplicit"), (907, "cudaErrorCapturedEvent"),
    (908, "cudaErrorStreamCaptureWrongThread"), (909, "cudaErrorTimeout"), (910, "cudaErrorGraphExecUpdateFailure"),
    (911, "cudaErrorExternalDevice"), (912, "cudaErrorInvalidClusterSize"), (913, "cudaErrorFunctionNotLoaded"),
    (914, "cudaErrorInvalidResourceType"), (915, "cudaErrorInvalidResourceConfiguration"),
    (917, "cudaErrorStreamDetached"), (918, "cudaErrorGraphRecaptureFailure"), (919, "cudaErrorFabricNotReady"),
    (999, "cudaErrorUnknown"), (10000, "cudaErrorApiFailureBase"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    fn text(pointer: *const c_char) -> String {
        // SAFETY: interned text.
        unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
    }

    #[test]
    fn names_are_in_order_and_found() {
        assert!(NAMES.is_sorted_by_key(|entry| entry.0));
        // SAFETY: no pointers go in.
        unsafe {
            assert_eq!(text(cudaGetErrorName(2)), "cudaErrorMemoryAllocation");
            assert_eq!(text(cudaGetErrorName(9)), "cudaErrorInvalidConfiguration");
            assert_eq!(text(cudaGetErrorName(4711)), "unrecognized error code");
        }
    }

    #[test]
    fn every_error_has_a_text() {
        // SAFETY: no pointers go in.
        unsafe {
            assert_eq!(text(cudaGetErrorString(0)), "no error");
            assert_eq!(text(cudaGetErrorString(700)), "an illegal memory access was encountered");
            assert_eq!(text(cudaGetErrorString(12)), "invalid pitch value");
            assert_eq!(text(cudaGetErrorString(4711)), "unrecognized error code");
        }
    }

    #[test]
    fn the_last_error_is_taken_once_and_belongs_to_its_thread() {
        record(1);
        record(cuda::ERROR_NOT_READY);
        // SAFETY: no pointers go in.
        unsafe {
            std::thread::spawn(|| assert_eq!(cudaGetLastError(), 0)).join().expect("another thread");
            assert_eq!((cudaPeekAtLastError(), cudaGetLastError(), cudaGetLastError()), (1, 1, 0));
        }
    }
}
