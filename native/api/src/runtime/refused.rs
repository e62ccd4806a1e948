//! Runtime functions that exist so that programs link and get an answer they can act on.

use super::{Answer, Libraries, RuntimeFunction, Twin};

macro_rules! refused {
    ($($reason:literal { $($libraries:ident $twin:ident $symbol:ident,)* })*) => {
        &[$($(RuntimeFunction {
            symbol: stringify!($symbol),
            libraries: Libraries::$libraries,
            twin: Twin::$twin,
            answer: Answer::Refused($reason),
        },)*)*]
    };
}

#[rustfmt::skip]
pub(super) const REFUSED: &[RuntimeFunction] = refused! {
    "kernels on a remote GPU cannot reach host memory; allocate device memory and copy" {
        Both None cudaMemAdvise,
        Only12 None cudaMemAdvise_v2,
        Both Ptsz cudaMemPrefetchAsync,
        Only12 Ptsz cudaMemPrefetchAsync_v2,
        Only13 Ptsz cudaMemPrefetchBatchAsync,
        Only13 Ptsz cudaMemDiscardBatchAsync,
        Only13 Ptsz cudaMemDiscardAndPrefetchBatchAsync,
        Only13 None cudaMemGetLocationInfo,
    }
    "passing memory and events of a remote GPU between processes comes later" {
        Both None cudaIpcGetMemHandle,
        Both None cudaIpcOpenMemHandle,
        Both None cudaIpcCloseMemHandle,
        Both None cudaIpcGetEventHandle,
        Both None cudaIpcOpenEventHandle,
    }
    "textures, surfaces and CUDA arrays are not served yet" {
        Both None cudaMallocArray,
        Both None cudaMalloc3DArray,
        Both None cudaMallocMipmappedArray,
        Both None cudaFreeArray,
        Both None cudaFreeMipmappedArray,
        Both None cudaGetMipmappedArrayLevel,
        Both None cudaArrayGetInfo,
        Both None cudaArrayGetPlane,
        Both None cudaArrayGetMemoryRequirements,
        Both None cudaArrayGetSparseProperties,
        Both None cudaMipmappedArrayGetMemoryRequirements,
        Both None cudaMipmappedArrayGetSparseProperties,
        Both None cudaGetChannelDesc,
        Both None cudaCreateTextureObject,
        Both None cudaDestroyTextureObject,
        Both None cudaGetTextureObjectResourceDesc,
        Both None cudaGetTextureObjectResourceViewDesc,
        Both None cudaGetTextureObjectTextureDesc,
        Both None cudaCreateSurfaceObject,
        Both None cudaDestroySurfaceObject,
        Both None cudaGetSurfaceObjectResourceDesc,
        Both None cudaDeviceGetTexture1DLinearMaxWidth,
        Both Ptds cudaMemcpyToArray,
        Both Ptsz cudaMemcpyToArrayAsync,
        Both Ptds cudaMemcpyFromArray,
        Both Ptsz cudaMemcpyFromArrayAsync,
        Both Ptds cudaMemcpyArrayToArray,
        Both Ptds cudaMemcpy2DToArray,
        Both Ptsz cudaMemcpy2DToArrayAsync,
        Both Ptds cudaMemcpy2DFromArray,
        Both Ptsz cudaMemcpy2DFromArrayAsync,
        Both Ptds cudaMemcpy2DArrayToArray,
    }
    "batches of three-dimensional copies are not served yet; copy one by one" {
        Both Ptsz cudaMemcpy3DBatchAsync,
        Only13 Ptsz cudaMemcpy3DWithAttributesAsync,
    }
    "memory and semaphores of other graphics interfaces lie on this machine, which has no GPU" {
        Both None cudaImportExternalMemory,
        Both None cudaDestroyExternalMemory,
        Both None cudaExternalMemoryGetMappedBuffer,
        Both None cudaExternalMemoryGetMappedMipmappedArray,
        Both None cudaImportExternalSemaphore,
        Both None cudaDestroyExternalSemaphore,
        Both Ptsz cudaSignalExternalSemaphoresAsync,
        Only12 Ptsz cudaSignalExternalSemaphoresAsync_v2,
        Both Ptsz cudaWaitExternalSemaphoresAsync,
        Only12 Ptsz cudaWaitExternalSemaphoresAsync_v2,
        Both None cudaGraphAddExternalSemaphoresSignalNode,
        Both None cudaGraphAddExternalSemaphoresWaitNode,
        Both None cudaGraphExternalSemaphoresSignalNodeGetParams,
        Both None cudaGraphExternalSemaphoresSignalNodeSetParams,
        Both None cudaGraphExternalSemaphoresWaitNodeGetParams,
        Both None cudaGraphExternalSemaphoresWaitNodeSetParams,
        Both None cudaGraphExecExternalSemaphoresSignalNodeSetParams,
        Both None cudaGraphExecExternalSemaphoresWaitNodeSetParams,
    }
    "a remote GPU shows no pictures on this machine: OpenGL, EGL and VDPAU cannot share memory with it" {
        Both None cudaGLGetDevices,
        Both None cudaGLMapBufferObject,
        Both None cudaGLMapBufferObjectAsync,
        Both None cudaGLRegisterBufferObject,
        Both None cudaGLSetBufferObjectMapFlags,
        Both None cudaGLSetGLDevice,
        Both None cudaGLUnmapBufferObject,
        Both None cudaGLUnmapBufferObjectAsync,
        Both None cudaGLUnregisterBufferObject,
        Both None cudaGraphicsEGLRegisterImage,
        Both None cudaGraphicsGLRegisterBuffer,
        Both None cudaGraphicsGLRegisterImage,
        Both None cudaGraphicsMapResources,
        Both None cudaGraphicsResourceGetMappedEglFrame,
        Both None cudaGraphicsResourceGetMappedMipmappedArray,
        Both None cudaGraphicsResourceGetMappedPointer,
        Both None cudaGraphicsResourceSetMapFlags,
        Both None cudaGraphicsSubResourceGetMappedArray,
        Both None cudaGraphicsUnmapResources,
        Both None cudaGraphicsUnregisterResource,
        Both None cudaGraphicsVDPAURegisterOutputSurface,
        Both None cudaGraphicsVDPAURegisterVideoSurface,
        Both None cudaEGLStreamConsumerAcquireFrame,
        Both None cudaEGLStreamConsumerConnect,
        Both None cudaEGLStreamConsumerConnectWithFlags,
        Both None cudaEGLStreamConsumerDisconnect,
        Both None cudaEGLStreamConsumerReleaseFrame,
        Both None cudaEGLStreamProducerConnect,
        Both None cudaEGLStreamProducerDisconnect,
        Both None cudaEGLStreamProducerPresentFrame,
        Both None cudaEGLStreamProducerReturnFrame,
        Both None cudaEventCreateFromEGLSync,
        Both None cudaVDPAUGetDevice,
        Both None cudaVDPAUSetVDPAUDevice,
    }
    "a lease is a part of a device already; it is not divided further" {
        Only13 None cudaDevResourceGenerateDesc,
        Only13 None cudaDevSmResourceSplit,
        Only13 None cudaDevSmResourceSplitByCount,
        Only13 None cudaDeviceGetDevResource,
        Only13 None cudaDeviceGetExecutionCtx,
        Only13 None cudaExecutionCtxDestroy,
        Only13 None cudaExecutionCtxGetDevResource,
        Only13 None cudaExecutionCtxGetDevice,
        Only13 None cudaExecutionCtxGetId,
        Only13 None cudaExecutionCtxRecordEvent,
        Only13 None cudaExecutionCtxStreamCreate,
        Only13 None cudaExecutionCtxSynchronize,
        Only13 None cudaExecutionCtxWaitEvent,
        Only13 None cudaGreenCtxCreate,
        Only13 Ptsz cudaStreamGetDevResource,
        Only13 None cudaSubgridCreate,
        Only13 None cudaSubgridWorkerGridCreate,
        Only13 None cudaSubgridWorksetCreate,
    }
    "conditional nodes of graphs are not served yet" {
        Only13 None cudaGraphConditionalHandleCreate_v2,
    }
    "CUDA itself retired it" {
        Only12 None cudaLaunchCooperativeKernelMultiDevice,
        Only12 None cudaSetDoubleForDevice,
        Only12 None cudaSetDoubleForHost,
    }
    "only public functions of CUDA are served, and this one looks for private ones" {
        Both None cudaGetExportTable,
        Only13 None __cudaGetProcAddress,
    }
};
