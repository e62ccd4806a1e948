//! cuDNN.

use super::{Shim, Source, Status};

pub const SOURCE: Source = Source {
    number: 7,
    title: "cuDNN",
    name: "cudnn",
    shims: &[Shim { soname: "libcudnn.so.9", version: 91_400, node: "libcudnn.so.9" }],
    status: Status {
        not_initialized: 1001,
        alloc_failed: 4000,
        invalid_value: 2000,
        execution_failed: 5000,
        not_supported: 3000,
    },
    small_handles: false,
    probed: false,
    set_stream: "cudnnSetStream",
    set_pointer_mode: "",
    functions: "
local cudnnGetErrorString(enum status)
local cudnnGetVersion()
local cudnnGetCudartVersion()
local cudnnGetProperty(enum property, any value)
make cudnnCreate(new handle)
end cudnnDestroy(end handle)
set cudnnSetStream(object handle, stream stream)
get cudnnGetStream(object handle, any stream) = cudnnSetStream
refused cuDNN is not served yet:
cudnnBackendCreateDescriptor cudnnBackendDestroyDescriptor cudnnBackendExecute cudnnBackendFinalize
cudnnBackendGetAttribute cudnnBackendSetAttribute cudnnBatchNormalizationBackwardEx
cudnnBatchNormalizationForwardInference cudnnBatchNormalizationForwardTrainingEx cudnnCTCLoss cudnnCTCLoss_v8
cudnnConvolutionBackwardData cudnnConvolutionBackwardFilter cudnnConvolutionBiasActivationForward
cudnnConvolutionForward cudnnCreateActivationDescriptor cudnnCreateCTCLossDescriptor
cudnnCreateConvolutionDescriptor cudnnCreateDropoutDescriptor cudnnCreateFilterDescriptor
cudnnCreatePoolingDescriptor cudnnCreateRNNDataDescriptor cudnnCreateRNNDescriptor
cudnnCreateSpatialTransformerDescriptor cudnnCreateTensorDescriptor
cudnnDestroyActivationDescriptor cudnnDestroyCTCLossDescriptor cudnnDestroyConvolutionDescriptor
cudnnDestroyDropoutDescriptor cudnnDestroyFilterDescriptor cudnnDestroyRNNDataDescriptor
cudnnDestroyRNNDescriptor cudnnDestroySpatialTransformerDescriptor cudnnDestroyTensorDescriptor
cudnnDropoutGetStatesSize cudnnFindConvolutionBackwardDataAlgorithmEx
cudnnFindConvolutionBackwardFilterAlgorithmEx cudnnFindConvolutionForwardAlgorithmEx
cudnnGetBatchNormalizationBackwardExWorkspaceSize cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize
cudnnGetBatchNormalizationTrainingExReserveSpaceSize cudnnGetCTCLossWorkspaceSize
cudnnGetCTCLossWorkspaceSize_v8 cudnnGetConvolutionBackwardDataAlgorithm_v7
cudnnGetConvolutionBackwardDataWorkspaceSize cudnnGetConvolutionBackwardFilterAlgorithm_v7
cudnnGetConvolutionBackwardFilterWorkspaceSize cudnnGetConvolutionForwardAlgorithm_v7
cudnnGetConvolutionForwardWorkspaceSize cudnnGetFilterNdDescriptor
cudnnGetLastErrorString cudnnGetRNNTempSpaceSizes cudnnGetRNNWeightParams
cudnnGetRNNWeightSpaceSize cudnnGetTensorNdDescriptor cudnnPoolingForward
cudnnRNNBackwardData_v8 cudnnRNNBackwardWeights_v8 cudnnRNNForward cudnnRestoreDropoutDescriptor
cudnnSetActivationDescriptor cudnnSetCTCLossDescriptorEx cudnnSetCTCLossDescriptor_v9
cudnnSetConvolutionGroupCount cudnnSetConvolutionMathType cudnnSetConvolutionNdDescriptor
cudnnSetDropoutDescriptor cudnnSetFilterNdDescriptor cudnnSetPooling2dDescriptor cudnnSetRNNDataDescriptor
cudnnSetRNNDescriptor_v8 cudnnSetSpatialTransformerNdDescriptor cudnnSetTensorNdDescriptor
cudnnSpatialTfGridGeneratorBackward cudnnSpatialTfGridGeneratorForward cudnnSpatialTfSamplerBackward
cudnnSpatialTfSamplerForward
",
};
