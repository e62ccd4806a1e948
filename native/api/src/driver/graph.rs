//! Graphs, capture, user objects.

use crate::function::Function;

#[rustfmt::skip]
pub(super) const SERVED: &[Function] = served! {
    Local cuStreamGetCaptureInfo_v2 11030 ptsz
        (stream: input usize, status: output *mut u32, id: optional *mut u64, graph: optional *mut usize,
         dependencies: optional *mut *const usize, count: optional *mut usize);
    Local cuStreamGetCaptureInfo_v3 12030 ptsz
        (stream: input usize, status: output *mut u32, id: optional *mut u64, graph: optional *mut usize,
         dependencies: optional *mut *const usize, edges: optional *mut *const c_void, count: optional *mut usize);
    Local cuThreadExchangeStreamCaptureMode 10010 (mode: both *mut u32);
    Local cuGraphCreate 10000 (graph: output *mut usize, flags: input u32);
    Local cuGraphDestroy 10000 (graph: input usize);
    Local cuGraphClone 10000 (clone: output *mut usize, graph: input usize);
    Local cuGraphNodeFindInClone 10000 (node: output *mut usize, original: input usize, clone: input usize);
    Local cuGraphGetId 13010 (graph: input usize, id: output *mut u32);
    Local cuGraphNodeGetType 10000 (node: input usize, kind: output *mut u32);
    Local cuGraphNodeGetContainingGraph 13010 (node: input usize, graph: output *mut usize);
    Local cuGraphNodeGetLocalId 13010 (node: input usize, id: output *mut u32);
    Local cuGraphNodeGetToolsId 13010 (node: input usize, id: output *mut u64);
    Local cuGraphGetNodes 10000 (graph: input usize, nodes: optional *mut usize, count: both *mut usize);
    Local cuGraphGetRootNodes 10000 (graph: input usize, nodes: optional *mut usize, count: both *mut usize);
    Local cuGraphGetEdges 10000
        (graph: input usize, from: optional *mut usize, to: optional *mut usize, count: both *mut usize);
    Local cuGraphGetEdges_v2 12030
        (graph: input usize, from: optional *mut usize, to: optional *mut usize, data: optional *mut c_void,
         count: both *mut usize);
    Local cuGraphNodeGetDependencies 10000 (node: input usize, nodes: optional *mut usize, count: both *mut usize);
    Local cuGraphNodeGetDependencies_v2 12030
        (node: input usize, nodes: optional *mut usize, data: optional *mut c_void, count: both *mut usize);
    Local cuGraphNodeGetDependentNodes 10000 (node: input usize, nodes: optional *mut usize, count: both *mut usize);
    Local cuGraphNodeGetDependentNodes_v2 12030
        (node: input usize, nodes: optional *mut usize, data: optional *mut c_void, count: both *mut usize);
    Local cuGraphAddDependencies 10000
        (graph: input usize, from: input *const usize, to: input *const usize, count: input usize);
    Local cuGraphAddDependencies_v2 12030
        (graph: input usize, from: input *const usize, to: input *const usize, data: input *const c_void,
         count: input usize);
    Local cuGraphRemoveDependencies 10000
        (graph: input usize, from: input *const usize, to: input *const usize, count: input usize);
    Local cuGraphRemoveDependencies_v2 12030
        (graph: input usize, from: input *const usize, to: input *const usize, data: input *const c_void,
         count: input usize);
    Local cuGraphDestroyNode 10000 (node: input usize);
    Local cuGraphDebugDotPrint 11030 (graph: input usize, path: input *const c_char, flags: input u32);
    Local cuGraphAddKernelNode 10000
        (node: output *mut usize, graph: input usize, after: input *const usize, count: input usize,
         parameters: input *const c_void);
    Local cuGraphKernelNodeGetParams 10000 (node: input usize, parameters: output *mut c_void);
    Local cuGraphKernelNodeSetParams 10000 (node: input usize, parameters: input *const c_void);
    Local cuGraphAddKernelNode_v2 12000
        (node: output *mut usize, graph: input usize, after: input *const usize, count: input usize,
         parameters: input *const c_void);
    Local cuGraphKernelNodeGetParams_v2 12000 (node: input usize, parameters: output *mut c_void);
    Local cuGraphKernelNodeSetParams_v2 12000 (node: input usize, parameters: input *const c_void);
    Local cuGraphKernelNodeSetAttribute 11000 (node: input usize, attribute: input u32, value: input *const c_void);
    Local cuGraphKernelNodeGetAttribute 11000 (node: input usize, attribute: input u32, value: output *mut c_void);
    Local cuGraphKernelNodeCopyAttributes 11000 (target: input usize, source: input usize);
    Local cuGraphAddMemcpyNode 10000
        (node: output *mut usize, graph: input usize, after: input *const usize, count: input usize,
         parameters: input *const c_void, context: input usize);
    Local cuGraphMemcpyNodeGetParams 10000 (node: input usize, parameters: output *mut c_void);
    Local cuGraphMemcpyNodeSetParams 10000 (node: input usize, parameters: input *const c_void);
    Local cuGraphAddMemsetNode 10000
        (node: output *mut usize, graph: input usize, after: input *const usize, count: input usize,
         parameters: input *const c_void, context: input usize);
    Local cuGraphMemsetNodeGetParams 10000 (node: input usize, parameters: output *mut c_void);
    Local cuGraphMemsetNodeSetParams 10000 (node: input usize, parameters: input *const c_void);
    Local cuGraphAddHostNode 10000
        (node: output *mut usize, graph: input usize, after: input *const usize, count: input usize,
         parameters: input *const c_void);
    Local cuGraphHostNodeGetParams 10000 (node: input usize, parameters: output *mut c_void);
    Local cuGraphHostNodeSetParams 10000 (node: input usize, parameters: input *const c_void);
    Local cuGraphAddBatchMemOpNode 11070
        (node: output *mut usize, graph: input usize, after: input *const usize, count: input usize,
         parameters: input *const c_void);
    Local cuGraphBatchMemOpNodeGetParams 11070 (node: input usize, parameters: output *mut c_void);
    Local cuGraphBatchMemOpNodeSetParams 11070 (node: input usize, parameters: input *const c_void);
    Local cuGraphAddChildGraphNode 10000
        (node: output *mut usize, graph: input usize, after: input *const usize, count: input usize,
         inner: input usize);
    Local cuGraphChildGraphNodeGetGraph 10000 (node: input usize, graph: output *mut usize);
    Local cuGraphAddEmptyNode 10000
        (node: output *mut usize, graph: input usize, after: input *const usize, count: input usize);
    Local cuGraphAddEventRecordNode 11010
        (node: output *mut usize, graph: input usize, after: input *const usize, count: input usize,
         event: input usize);
    Local cuGraphEventRecordNodeGetEvent 11010 (node: input usize, event: output *mut usize);
    Local cuGraphEventRecordNodeSetEvent 11010 (node: input usize, event: input usize);
    Local cuGraphAddEventWaitNode 11010
        (node: output *mut usize, graph: input usize, after: input *const usize, count: input usize,
         event: input usize);
    Local cuGraphEventWaitNodeGetEvent 11010 (node: input usize, event: output *mut usize);
    Local cuGraphEventWaitNodeSetEvent 11010 (node: input usize, event: input usize);
    Posted cuGraphAddMemAllocNode 11040
        (node: output *mut usize, graph: input usize, after: input *const usize, count: input usize,
         parameters: both *mut c_void);
    Local cuGraphMemAllocNodeGetParams 11040 (node: input usize, parameters: output *mut c_void);
    Local cuGraphAddMemFreeNode 11040
        (node: output *mut usize, graph: input usize, after: input *const usize, count: input usize,
         address: input u64);
    Local cuGraphMemFreeNodeGetParams 11040 (node: input usize, address: output *mut u64);
    Local cuGraphAddNode 12020
        (node: output *mut usize, graph: input usize, after: input *const usize, count: input usize,
         parameters: both *mut c_void);
    Local cuGraphAddNode_v2 12030
        (node: output *mut usize, graph: input usize, after: input *const usize, data: input *const c_void,
         count: input usize, parameters: both *mut c_void);
    Local cuGraphAddNode_v3 = cuGraphAddNode_v2 13040
        (node: output *mut usize, graph: input usize, after: input *const usize, data: input *const c_void,
         count: input usize, parameters: both *mut c_void);
    Local cuGraphNodeSetParams 12020 (node: input usize, parameters: input *mut c_void);
    Local cuGraphNodeSetParams_v2 = cuGraphNodeSetParams 13040 (node: input usize, parameters: input *mut c_void);
    Local cuGraphNodeGetParams 13020 (node: input usize, parameters: output *mut c_void);
    Local cuDeviceGetGraphMemAttribute 11040 (device: input i32, attribute: input u32, value: output *mut c_void);
    Local cuDeviceGraphMemTrim 11040 (device: input i32);
    Local cuDeviceSetGraphMemAttribute 11040 (device: input i32, attribute: input u32, value: input *mut c_void);
    Local cuUserObjectCreate 11030
        (object: output *mut usize, pointer: input *mut c_void,
         destroy: input Option<unsafe extern "C" fn(*mut c_void)>, references: input u32, flags: input u32);
    Local cuUserObjectRetain 11030 (object: input usize, references: input u32);
    Local cuUserObjectRelease 11030 (object: input usize, references: input u32);
    Local cuGraphRetainUserObject 11030
        (graph: input usize, object: input usize, references: input u32, flags: input u32);
    Local cuGraphReleaseUserObject 11030 (graph: input usize, object: input usize, references: input u32);
    Call cuGraphInstantiateWithFlags 11040 (executable: output *mut usize, graph: input usize, flags: input u64);
    Call cuGraphInstantiateWithParams 12000 ptsz
        (executable: output *mut usize, graph: input usize, parameters: both *mut c_void);
    Call cuGraphInstantiate_v2 11000
        (executable: output *mut usize, graph: input usize, error_node: optional *mut usize,
         log: optional *mut c_char, log_bytes: input usize);
    Call cuGraphInstantiate = cuGraphInstantiate_v2 10000
        (executable: output *mut usize, graph: input usize, error_node: optional *mut usize,
         log: optional *mut c_char, log_bytes: input usize);
    Local cuGraphExecGetFlags 12000 (executable: input usize, flags: output *mut u64);
    Local cuGraphExecGetId 13010 (executable: input usize, id: output *mut u32);
    Posted cuGraphUpload 11010 ptsz (executable: input usize, stream: input usize);
    Posted cuGraphLaunch 10000 ptsz (executable: input usize, stream: input usize);
    Posted cuGraphExecDestroy 10000 (executable: input usize);
    Local cuGraphExecKernelNodeSetParams 10010
        (executable: input usize, node: input usize, parameters: input *const c_void);
    Local cuGraphExecKernelNodeSetParams_v2 12000
        (executable: input usize, node: input usize, parameters: input *const c_void);
    Local cuGraphExecMemcpyNodeSetParams 10020
        (executable: input usize, node: input usize, parameters: input *const c_void, context: input usize);
    Local cuGraphExecMemsetNodeSetParams 10020
        (executable: input usize, node: input usize, parameters: input *const c_void, context: input usize);
    Local cuGraphExecHostNodeSetParams 10020
        (executable: input usize, node: input usize, parameters: input *const c_void);
    Local cuGraphExecBatchMemOpNodeSetParams 11070
        (executable: input usize, node: input usize, parameters: input *const c_void);
    Local cuGraphExecChildGraphNodeSetParams 11010 (executable: input usize, node: input usize, inner: input usize);
    Local cuGraphExecEventRecordNodeSetEvent 11010 (executable: input usize, node: input usize, event: input usize);
    Local cuGraphExecEventWaitNodeSetEvent 11010 (executable: input usize, node: input usize, event: input usize);
    Local cuGraphExecNodeSetParams 12020
        (executable: input usize, node: input usize, parameters: input *mut c_void);
    Local cuGraphExecUpdate 10020
        (executable: input usize, graph: input usize, error_node: output *mut usize, result: output *mut u32);
    Local cuGraphExecUpdate_v2 12000 (executable: input usize, graph: input usize, result: output *mut c_void);
    Local cuGraphNodeSetEnabled 11060 (executable: input usize, node: input usize, enabled: input u32);
    Local cuGraphNodeGetEnabled 11060 (executable: input usize, node: input usize, enabled: output *mut u32);
    Local cuStreamBeginCapture 10000 ptsz (stream: input usize);
    Local cuStreamBeginCapture_v2 10010 ptsz (stream: input usize, mode: input u32);
    Local cuStreamBeginCaptureToGraph 12030 ptsz
        (stream: input usize, graph: input usize, after: input *const usize, data: input *const c_void,
         count: input usize, mode: input u32);
    Local cuStreamEndCapture 10000 ptsz (stream: input usize, graph: output *mut usize);
    Local cuStreamGetCaptureInfo 10010 ptsz (stream: input usize, status: output *mut u32, id: optional *mut u64);
    Local cuStreamUpdateCaptureDependencies 11030 ptsz
        (stream: input usize, after: input *const usize, count: input usize, flags: input u32);
    Local cuStreamUpdateCaptureDependencies_v2 12030 ptsz
        (stream: input usize, after: input *const usize, data: input *const c_void, count: input usize,
         flags: input u32);
};

#[rustfmt::skip]
pub(super) const REFUSED: &[Function] = refused! {
    "conditional nodes of graphs are not served yet" {
        cuGraphConditionalHandleCreate 12030,
    }
    "memory and semaphores of other drivers on this machine cannot be reached from a remote GPU" {
        cuGraphAddExternalSemaphoresSignalNode 11020,
        cuGraphAddExternalSemaphoresWaitNode 11020,
        cuGraphExecExternalSemaphoresSignalNodeSetParams 11020,
        cuGraphExecExternalSemaphoresWaitNodeSetParams 11020,
        cuGraphExternalSemaphoresSignalNodeGetParams 11020,
        cuGraphExternalSemaphoresSignalNodeSetParams 11020,
        cuGraphExternalSemaphoresWaitNodeGetParams 11020,
        cuGraphExternalSemaphoresWaitNodeSetParams 11020,
    }
    "capturing into a graphics context needs a display on the GPU's own machine" {
        cuStreamBeginCaptureToCig 13010 ptsz,
        cuStreamEndCaptureToCig 13010 ptsz,
    }
    "capturing over an existing graph is not served yet; capture a new graph and use cuGraphExecUpdate" {
        cuStreamBeginRecaptureToGraph 13030 ptsz,
    }
};
