//! OpenGL, EGL, VDPAU.

use crate::function::Function;

#[rustfmt::skip]
pub(super) const REFUSED: &[Function] = refused! {
    "a remote GPU draws on no screen of this machine: there is nothing to share with OpenGL, EGL or VDPAU" {
        cuEGLStreamConsumerAcquireFrame 7000,
        cuEGLStreamConsumerConnect 7000,
        cuEGLStreamConsumerConnectWithFlags 8000,
        cuEGLStreamConsumerDisconnect 7000,
        cuEGLStreamConsumerReleaseFrame 7000,
        cuEGLStreamProducerConnect 7000,
        cuEGLStreamProducerDisconnect 7000,
        cuEGLStreamProducerPresentFrame 7000,
        cuEGLStreamProducerReturnFrame 7000,
        cuEventCreateFromEGLSync 9000,
        cuGLCtxCreate 2000,
        cuGLCtxCreate_v2 3020,
        cuGLGetDevices 4010,
        cuGLGetDevices_v2 6050,
        cuGLInit 2000,
        cuGLMapBufferObject 2000,
        cuGLMapBufferObjectAsync 2030,
        cuGLMapBufferObjectAsync_v2 3020 ptsz,
        cuGLMapBufferObject_v2 3020 ptds,
        cuGLRegisterBufferObject 2000,
        cuGLSetBufferObjectMapFlags 2030,
        cuGLUnmapBufferObject 2000,
        cuGLUnmapBufferObjectAsync 2030,
        cuGLUnregisterBufferObject 2000,
        cuGraphicsEGLRegisterImage 7000,
        cuGraphicsGLRegisterBuffer 3000,
        cuGraphicsGLRegisterImage 3000,
        cuGraphicsMapResources 3000 ptsz,
        cuGraphicsResourceGetMappedEglFrame 7000,
        cuGraphicsResourceGetMappedMipmappedArray 5000,
        cuGraphicsResourceGetMappedPointer_v2 3020,
        cuGraphicsResourceSetMapFlags 3000,
        cuGraphicsResourceSetMapFlags_v2 6050,
        cuGraphicsSubResourceGetMappedArray 3000,
        cuGraphicsUnmapResources 3000 ptsz,
        cuGraphicsUnregisterResource 3000,
        cuGraphicsVDPAURegisterOutputSurface 3010,
        cuGraphicsVDPAURegisterVideoSurface 3010,
        cuVDPAUCtxCreate 3010,
        cuVDPAUCtxCreate_v2 3020,
        cuVDPAUGetDevice 3010,
    }
    "the 32-bit ABI of CUDA 3.1 and older cannot hold this device's addresses and sizes; use the _v2 function" {
        cuGraphicsResourceGetMappedPointer 3000,
    }
};
