//! Memory that several devices share over their fabric.

use crate::function::Function;

#[rustfmt::skip]
pub(super) const REFUSED: &[Function] = refused! {
    "a lease has no access to the fabric between GPUs" {
        cuFabricCpyBatchAsync 13050 ptsz,
        cuLogicalEndpointAddDevice 13030,
        cuLogicalEndpointBindAddr 13030,
        cuLogicalEndpointBindMem 13030,
        cuLogicalEndpointCreate 13030,
        cuLogicalEndpointDestroy 13030,
        cuLogicalEndpointExport 13030,
        cuLogicalEndpointGetLimits 13030,
        cuLogicalEndpointIdRelease 13030,
        cuLogicalEndpointIdReserve 13030,
        cuLogicalEndpointImport 13030,
        cuLogicalEndpointQuery 13030,
        cuLogicalEndpointUnbind 13030,
    }
    "multicast between GPUs is not served: each device of a lease has a worker of its own" {
        cuMulticastAddDevice 12010,
        cuMulticastBindAddr 12010,
        cuMulticastBindAddr_v2 13010,
        cuMulticastBindMem 12010,
        cuMulticastBindMem_v2 13010,
        cuMulticastCreate 12010,
        cuMulticastGetGranularity 12010,
        cuMulticastUnbind 12010,
    }
};
