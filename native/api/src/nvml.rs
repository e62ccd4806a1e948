//! NVML (`libnvidia-ml.so.1`): which of its public functions are served. Every other one exists and answers
//! NVML_ERROR_NOT_SUPPORTED: it asks about the card, and a borrower has a lease.

/// The public functions, from `names/nvml.txt`.
pub fn names() -> impl Iterator<Item = &'static str> {
    include_str!("../names/nvml.txt").lines().filter(|line| !line.starts_with('#'))
}

/// Those with an implementation in `shims/nvml`.
pub const SERVED: &[&str] = &[
    "nvmlDeviceGetArchitecture",
    "nvmlDeviceGetBrand",
    "nvmlDeviceGetComputeMode",
    "nvmlDeviceGetComputeRunningProcesses",
    "nvmlDeviceGetComputeRunningProcesses_v2",
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetCount",
    "nvmlDeviceGetCount_v2",
    "nvmlDeviceGetCudaComputeCapability",
    "nvmlDeviceGetDisplayActive",
    "nvmlDeviceGetDisplayMode",
    "nvmlDeviceGetFieldValues",
    "nvmlDeviceGetGraphicsRunningProcesses",
    "nvmlDeviceGetGraphicsRunningProcesses_v2",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetHandleByIndex",
    "nvmlDeviceGetHandleByIndex_v2",
    "nvmlDeviceGetHandleByPciBusId",
    "nvmlDeviceGetHandleByPciBusId_v2",
    "nvmlDeviceGetHandleByUUID",
    "nvmlDeviceGetIndex",
    "nvmlDeviceGetMPSComputeRunningProcesses",
    "nvmlDeviceGetMPSComputeRunningProcesses_v2",
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
    "nvmlDeviceGetMaxClockInfo",
    "nvmlDeviceGetMaxMigDeviceCount",
    "nvmlDeviceGetMemoryBusWidth",
    "nvmlDeviceGetMemoryInfo",
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetMinorNumber",
    "nvmlDeviceGetMultiGpuBoard",
    "nvmlDeviceGetName",
    "nvmlDeviceGetPciInfo",
    "nvmlDeviceGetPciInfoExt",
    "nvmlDeviceGetPciInfo_v2",
    "nvmlDeviceGetPciInfo_v3",
    "nvmlDeviceGetPersistenceMode",
    "nvmlDeviceGetUUID",
    "nvmlDeviceGetUtilizationRates",
    "nvmlDeviceGetVirtualizationMode",
    "nvmlDeviceIsMigDeviceHandle",
    "nvmlDeviceOnSameBoard",
    "nvmlErrorString",
    "nvmlInit",
    "nvmlInitWithFlags",
    "nvmlInit_v2",
    "nvmlShutdown",
    "nvmlSystemGetCudaDriverVersion",
    "nvmlSystemGetCudaDriverVersion_v2",
    "nvmlSystemGetDriverVersion",
    "nvmlSystemGetNVMLVersion",
    "nvmlSystemGetProcessName",
    "nvmlUnitGetCount",
];

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_served_is_public() {
        let names: Vec<&str> = super::names().collect();
        assert!(names.len() > 400 && names.is_sorted());
        for name in super::SERVED {
            assert!(names.contains(name), "{name}");
        }
    }
}
