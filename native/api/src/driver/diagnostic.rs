//! Core dumps, checkpoints, logs.

use crate::function::Function;

#[rustfmt::skip]
pub(super) const REFUSED: &[Function] = refused! {
    "a borrowed GPU's state is kept by parking (%gpu detach), not by checkpoints of this process" {
        cuCheckpointOperationComplete 13040,
        cuCheckpointProcessCheckpoint 12080,
        cuCheckpointProcessGetRestoreThreadId 12080,
        cuCheckpointProcessGetState 12080,
        cuCheckpointProcessLock 12080,
        cuCheckpointProcessRestore 12080,
        cuCheckpointProcessUnlock 12080,
    }
    "a GPU core dump would hold what other leases left on the card" {
        cuCoredumpDeregisterCompleteCallback 13020,
        cuCoredumpDeregisterStartCallback 13020,
        cuCoredumpGetAttribute 12010,
        cuCoredumpGetAttributeGlobal 12010,
        cuCoredumpRegisterCompleteCallback 13020,
        cuCoredumpRegisterStartCallback 13020,
        cuCoredumpSetAttribute 12010,
        cuCoredumpSetAttributeGlobal 12010,
    }
    "the driver's log is written on the GPU server; its sentences come with the errors" {
        cuLogsCurrent 12090,
        cuLogsDumpToFile 12090,
        cuLogsDumpToMemory 12090,
        cuLogsRegisterCallback 12090,
        cuLogsUnregisterCallback 12090,
    }
};
