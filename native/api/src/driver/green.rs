//! Green contexts, resources of devices and execution affinity.

use crate::function::Function;

#[rustfmt::skip]
pub(super) const REFUSED: &[Function] = refused! {
    "a borrowed GPU is divided by its lease, not by green contexts or execution affinity" {
        cuCtxFromGreenCtx 12040,
        cuCtxGetDevResource 12040,
        cuCtxGetExecAffinity 11040,
        cuDevResourceGenerateDesc 12040,
        cuDevSmResourceSplit 13010,
        cuDevSmResourceSplitByCount 12040,
        cuDeviceGetDevResource 12040,
        cuDeviceGetExecAffinitySupport 11040,
        cuGreenCtxCreate 12040,
        cuGreenCtxDestroy 12040,
        cuGreenCtxGetDevResource 12040,
        cuGreenCtxGetId 12090,
        cuGreenCtxRecordEvent 12040,
        cuGreenCtxStreamCreate 12050,
        cuGreenCtxWaitEvent 12040,
        cuStreamGetDevResource 13010 ptsz,
        cuStreamGetGreenCtx 12040,
    }
};
