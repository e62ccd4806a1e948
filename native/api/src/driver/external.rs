//! What other processes and drivers would share.

use crate::function::Function;

#[rustfmt::skip]
pub(super) const REFUSED: &[Function] = refused! {
    "memory and semaphores of other drivers on this machine cannot be reached from a remote GPU" {
        cuDestroyExternalMemory 10000,
        cuDestroyExternalSemaphore 10000,
        cuDeviceGetNvSciSyncAttributes 10020,
        cuExternalMemoryGetMappedBuffer 10000,
        cuExternalMemoryGetMappedMipmappedArray 10000,
        cuImportExternalMemory 10000,
        cuImportExternalSemaphore 10000,
        cuSignalExternalSemaphoresAsync 10000 ptsz,
        cuWaitExternalSemaphoresAsync 10000 ptsz,
    }
    "passing memory and events of a remote GPU between processes comes later" {
        cuIpcCloseMemHandle 4010,
        cuIpcGetEventHandle 4010,
        cuIpcGetMemHandle 4010,
        cuIpcOpenEventHandle 4010,
        cuIpcOpenMemHandle 4010,
        cuIpcOpenMemHandle_v2 11000,
        cuMemExportToShareableHandle 10020,
        cuMemGetHandleForAddressRange 11070,
        cuMemImportFromShareableHandle 10020,
        cuMemPoolExportPointer 11020,
        cuMemPoolExportToShareableHandle 11020,
        cuMemPoolImportFromShareableHandle 11020,
        cuMemPoolImportPointer 11020,
    }
};
