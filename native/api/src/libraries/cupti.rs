//! CUPTI: there is nothing of the local machine to profile.

use super::{Shim, Source, Status};

pub const SOURCE: Source = Source {
    number: 10,
    title: "CUPTI",
    name: "cupti",
    shims: &[
        Shim { soname: "libcupti.so.12", version: 24, node: "libcupti.so.12" },
        Shim { soname: "libcupti.so.13", version: 28, node: "libcupti.so.13" },
    ],
    status: Status { not_initialized: 15, alloc_failed: 8, invalid_value: 1, execution_failed: 999, not_supported: 27 },
    small_handles: false,
    in_place: false,
    probed: true,
    set_pointer_mode: "",
    functions: "
local cuptiGetVersion(any version)
local cuptiGetResultString(enum result, any text)
local cuptiGetErrorMessage(enum result, any text)
refused a remote GPU cannot be profiled from here:
cuptiActivityConfigureUnifiedMemoryCounter cuptiActivityDisable cuptiActivityEnable
cuptiActivityEnableCudaEventDeviceTimestamps cuptiActivityEnableDriverApi cuptiActivityEnableHWTrace
cuptiActivityEnableRuntimeApi cuptiActivityFlushAll cuptiActivityFlushPeriod cuptiActivityGetNextRecord
cuptiActivityGetNumDroppedRecords cuptiActivityPopExternalCorrelationId cuptiActivityPushExternalCorrelationId
cuptiActivityRegisterCallbacks cuptiActivityRegisterTimestampCallback cuptiActivitySetAttribute
cuptiDeviceGetChipName cuptiEnableCallback cuptiEnableDomain cuptiFinalize cuptiGetCallbackName
cuptiGetContextId cuptiGetDeviceId cuptiGetGraphId cuptiGetGraphNodeId cuptiGetStreamIdEx
cuptiGetTimestamp cuptiPmSamplingCounterDataGetSampleInfo
cuptiPmSamplingCounterDataImageInitialize cuptiPmSamplingDecodeData cuptiPmSamplingDisable
cuptiPmSamplingEnable cuptiPmSamplingGetCounterAvailability cuptiPmSamplingGetCounterDataInfo
cuptiPmSamplingGetCounterDataSize cuptiPmSamplingSetConfig cuptiPmSamplingStart cuptiPmSamplingStop
cuptiProfilerBeginPass cuptiProfilerBeginSession cuptiProfilerCounterDataImageCalculateScratchBufferSize
cuptiProfilerCounterDataImageCalculateSize cuptiProfilerCounterDataImageInitialize
cuptiProfilerCounterDataImageInitializeScratchBuffer cuptiProfilerDeInitialize cuptiProfilerDeviceSupported
cuptiProfilerDisableProfiling cuptiProfilerEnableProfiling cuptiProfilerEndPass cuptiProfilerEndSession
cuptiProfilerFlushCounterData cuptiProfilerGetCounterAvailability cuptiProfilerHostConfigAddMetrics
cuptiProfilerHostDeinitialize cuptiProfilerHostEvaluateToGpuValues cuptiProfilerHostGetBaseMetrics
cuptiProfilerHostGetConfigImage cuptiProfilerHostGetConfigImageSize
cuptiProfilerHostGetMaxNumHardwareMetricsPerPass cuptiProfilerHostGetMetricProperties
cuptiProfilerHostGetNumOfPasses cuptiProfilerHostGetRangeName cuptiProfilerHostGetSubMetrics
cuptiProfilerHostGetSupportedChips cuptiProfilerHostInitialize cuptiProfilerInitialize
cuptiProfilerIsPassCollected cuptiProfilerPopRange cuptiProfilerPushRange cuptiProfilerSetConfig
cuptiProfilerUnsetConfig cuptiSetThreadIdType cuptiSubscribe cuptiUnsubscribe
cuptiActivity{Disable,Enable,EnableDriverApi,EnableRuntimeApi,GetNextRecord,GetNumDroppedRecords}_v2
cuptiActivity{PopExternalCorrelationId,PushExternalCorrelationId,RegisterCallbacks,SetAttribute}_v2
cuptiActivityGetNvtxExtPayloadAttr cuptiActivityGetNvtxExtPayloadEntryTypeInfo
cuptiGetTimestamp_v2 cuptiSubscribe_v2
",
};
