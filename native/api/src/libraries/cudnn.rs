//! cuDNN. Descriptors are drafts: nothing waits for one before it is closed or used.

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
    in_place: false,
    probed: false,
    set_pointer_mode: "",
    functions: "
local cudnnGetErrorString(enum status)
local cudnnGetVersion()
local cudnnGetCudartVersion()
local cudnnGetProperty(enum property, any value)
local cudnn{Graph,Ops,Cnn,Adv}VersionCheck()
make cudnnCreate(new handle)
end cudnnDestroy(end handle)
set cudnnSetStream(object handle, stream stream)
get cudnnGetStream(object handle, any stream) = cudnnSetStream
local cudnnGetLastErrorString(any text, u64 bytes)

# Graphs. What is closed without waiting: CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR
draft cudnnBackendCreateDescriptor(enum type, new descriptor)
end cudnnBackendDestroyDescriptor(end descriptor)
write cudnnBackendSetAttribute(object descriptor, enum attribute, enum type, dim64 count, elements:type*count elements)
finish cudnnBackendFinalize(object descriptor) = 16
read cudnnBackendGetAttribute(object descriptor, enum attribute, enum type, dim64 wanted, out:8 count, into:type*wanted elements)
run cudnnBackendExecute(object handle, which plan, object pack)
local cudnnBackend{Populate,Update}CudaGraph(any handle, any plan, any pack, any graph)

# Descriptors of the functions below
draft cudnnCreateTensorDescriptor(new descriptor)
end cudnnDestroyTensorDescriptor(end descriptor)
write cudnnSetTensor4dDescriptor(object descriptor, enum format, enum type, i32 n, i32 c, i32 h, i32 w)
write cudnnSetTensor4dDescriptorEx(object descriptor, enum type, i32 n, i32 c, i32 h, i32 w, i32 nstride, i32 cstride, i32 hstride, i32 wstride)
write cudnnSetTensorNdDescriptor(object descriptor, enum type, dim count, in:4*count dims, in:4*count strides)
write cudnnSetTensorNdDescriptorEx(object descriptor, enum format, enum type, dim count, in:4*count dims)
read cudnnGetTensor4dDescriptor(object descriptor, out:4 type, out:4 n, out:4 c, out:4 h, out:4 w, out:4 nstride, out:4 cstride, out:4 hstride, out:4 wstride)
read cudnnGetTensorNdDescriptor(object descriptor, dim wanted, out:4 type, out:4 count, inout:4*wanted dims, inout:4*wanted strides)
read cudnnGetTensorSizeInBytes(object descriptor, out:8 bytes)
write cudnnDeriveBNTensorDescriptor(object descriptor, object x, enum mode)
draft cudnnCreateFilterDescriptor(new descriptor)
end cudnnDestroyFilterDescriptor(end descriptor)
write cudnnSetFilter4dDescriptor(object descriptor, enum type, enum format, i32 k, i32 c, i32 h, i32 w)
write cudnnSetFilterNdDescriptor(object descriptor, enum type, enum format, dim count, in:4*count dims)
read cudnnGetFilterNdDescriptor(object descriptor, dim wanted, out:4 type, out:4 format, out:4 count, inout:4*wanted dims)
draft cudnnCreateConvolutionDescriptor(new descriptor)
end cudnnDestroyConvolutionDescriptor(end descriptor)
write cudnnSetConvolution2dDescriptor(object descriptor, i32 padh, i32 padw, i32 strideh, i32 stridew, i32 dilationh, i32 dilationw, enum mode, enum compute)
write cudnnSetConvolutionNdDescriptor(object descriptor, dim count, in:4*count padding, in:4*count stride, in:4*count dilation, enum mode, enum compute)
write cudnnSetConvolutionGroupCount(object descriptor, i32 groups)
write cudnnSetConvolutionMathType(object descriptor, enum math)
draft cudnnCreateActivationDescriptor(new descriptor)
end cudnnDestroyActivationDescriptor(end descriptor)
write cudnnSetActivationDescriptor(object descriptor, enum mode, enum nan, f64 coefficient)
draft cudnnCreatePoolingDescriptor(new descriptor)
end cudnnDestroyPoolingDescriptor(end descriptor)
write cudnnSetPooling2dDescriptor(object descriptor, enum mode, enum nan, i32 height, i32 width, i32 padh, i32 padw, i32 strideh, i32 stridew)
write cudnnSetPoolingNdDescriptor(object descriptor, enum mode, enum nan, dim count, in:4*count window, in:4*count padding, in:4*count stride)
draft cudnnCreateLRNDescriptor(new descriptor)
end cudnnDestroyLRNDescriptor(end descriptor)
write cudnnSetLRNDescriptor(object descriptor, u32 n, f64 alpha, f64 beta, f64 k)
draft cudnnCreateReduceTensorDescriptor(new descriptor)
end cudnnDestroyReduceTensorDescriptor(end descriptor)
write cudnnSetReduceTensorDescriptor(object descriptor, enum operation, enum compute, enum nan, enum indices, enum indextype)
draft cudnnCreateDropoutDescriptor(new descriptor)
end cudnnDestroyDropoutDescriptor(end descriptor)
ask cudnnDropoutGetStatesSize(object handle, out:8 bytes)
set cudnnSetDropoutDescriptor(object descriptor, object handle, f32 dropout, device states, u64 bytes, u64 seed)
write cudnnRestoreDropoutDescriptor(object descriptor, object handle, f32 dropout, device states, u64 bytes, u64 seed)
draft cudnnCreateRNNDescriptor(new descriptor)
end cudnnDestroyRNNDescriptor(end descriptor)
write cudnnSetRNNDescriptor_v8(object descriptor, enum algorithm, enum cell, enum bias, enum direction, enum input, enum type, enum precision, enum math, i32 inputs, i32 hidden, i32 projection, i32 layers, optional dropout, u32 flags)
local cudnnGetRNNDescriptor_v8(any descriptor, any algorithm, any cell, any bias, any direction, any input, any type, any precision, any math, any inputs, any hidden, any projection, any layers, any dropout, any flags)
draft cudnnCreateRNNDataDescriptor(new descriptor)
end cudnnDestroyRNNDataDescriptor(end descriptor)
write cudnnSetRNNDataDescriptor(object descriptor, enum type, enum layout, i32 length, dim batch, i32 vector, in:4*batch lengths, scalar:tensor(type) padding)
draft cudnnCreateCTCLossDescriptor(new descriptor)
end cudnnDestroyCTCLossDescriptor(end descriptor)
write cudnnSetCTCLossDescriptorEx(object descriptor, enum compute, enum normalization, enum gradient)
write cudnnSetCTCLossDescriptor_v9(object descriptor, enum compute, enum normalization, enum gradient, i32 longest)
draft cudnnCreateSpatialTransformerDescriptor(new descriptor)
end cudnnDestroySpatialTransformerDescriptor(end descriptor)
write cudnnSetSpatialTransformerNdDescriptor(object descriptor, enum sampler, enum type, dim count, in:4*count dims)

# Convolution
read cudnnGetConvolutionForwardAlgorithm_v7(object handle, object x, object w, object convolution, object y, dim wanted, out:4 found, inout:48*wanted results)
read cudnnGetConvolutionBackwardDataAlgorithm_v7(object handle, object w, object dy, object convolution, object dx, dim wanted, out:4 found, inout:48*wanted results)
read cudnnGetConvolutionBackwardFilterAlgorithm_v7(object handle, object x, object dy, object convolution, object dw, dim wanted, out:4 found, inout:48*wanted results)
run cudnnFindConvolutionForwardAlgorithmEx(object handle, object xdesc, device x, object wdesc, device w, object convolution, object ydesc, device y, dim wanted, out:4 found, inout:48*wanted results, device work, u64 bytes)
run cudnnFindConvolutionBackwardDataAlgorithmEx(object handle, object wdesc, device w, object dydesc, device dy, object convolution, object dxdesc, device dx, dim wanted, out:4 found, inout:48*wanted results, device work, u64 bytes)
run cudnnFindConvolutionBackwardFilterAlgorithmEx(object handle, object xdesc, device x, object dydesc, device dy, object convolution, object dwdesc, device dw, dim wanted, out:4 found, inout:48*wanted results, device work, u64 bytes)
read cudnnGetConvolutionForwardWorkspaceSize(object handle, object x, object w, object convolution, object y, enum algorithm, out:8 bytes)
read cudnnGetConvolutionBackwardDataWorkspaceSize(object handle, object w, object dy, object convolution, object dx, enum algorithm, out:8 bytes)
read cudnnGetConvolutionBackwardFilterWorkspaceSize(object handle, object x, object dy, object convolution, object dw, enum algorithm, out:8 bytes)
run cudnnConvolutionForward(object handle, scalar:tensor(ydesc) alpha, object xdesc, device x, object wdesc, device w, object convolution, enum algorithm, device work, u64 bytes, scalar:tensor(ydesc) beta, object ydesc, device y)
run cudnnConvolutionBackwardData(object handle, scalar:tensor(dxdesc) alpha, object wdesc, device w, object dydesc, device dy, object convolution, enum algorithm, device work, u64 bytes, scalar:tensor(dxdesc) beta, object dxdesc, device dx)
run cudnnConvolutionBackwardFilter(object handle, scalar:tensor(dwdesc) alpha, object xdesc, device x, object dydesc, device dy, object convolution, enum algorithm, device work, u64 bytes, scalar:tensor(dwdesc) beta, object dwdesc, device dw)
run cudnnConvolutionBiasActivationForward(object handle, scalar:tensor(ydesc) alpha, object xdesc, device x, object wdesc, device w, object convolution, enum algorithm, device work, u64 bytes, scalar:tensor(ydesc) alpha2, object zdesc, device z, object biasdesc, device bias, object activation, object ydesc, device y)
run cudnnReorderFilterAndBias(object handle, object filter, enum order, device source, device target, i32 bias, device biassource, device biastarget)

# Normalization, pooling, activation, softmax
read cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(object handle, enum mode, enum ops, object x, optional z, object y, object scale, optional activation, out:8 bytes)
read cudnnGetBatchNormalizationBackwardExWorkspaceSize(object handle, enum mode, enum ops, object x, optional y, object dy, optional dz, object dx, object scale, optional activation, out:8 bytes)
read cudnnGetBatchNormalizationTrainingExReserveSpaceSize(object handle, enum mode, enum ops, optional activation, object x, out:8 bytes)
run cudnnBatchNormalizationForwardTrainingEx(object handle, enum mode, enum ops, scalar:tensor(xdesc) alpha, scalar:tensor(xdesc) beta, object xdesc, device x, optional zdesc, device z, object ydesc, device y, object scaledesc, device scale, device bias, f64 factor, device mean, device variance, f64 epsilon, device savedmean, device savedvariance, optional activation, device work, u64 workbytes, device reserve, u64 reservebytes)
run cudnnBatchNormalizationBackwardEx(object handle, enum mode, enum ops, scalar:tensor(xdesc) alphadata, scalar:tensor(xdesc) betadata, scalar:tensor(xdesc) alphaparameter, scalar:tensor(xdesc) betaparameter, object xdesc, device x, optional ydesc, device y, object dydesc, device dy, optional dzdesc, device dz, object dxdesc, device dx, object scaledesc, device scale, device bias, device dscale, device dbias, f64 epsilon, device savedmean, device savedvariance, optional activation, device work, u64 workbytes, device reserve, u64 reservebytes)
run cudnnBatchNormalizationForwardInference(object handle, enum mode, scalar:tensor(xdesc) alpha, scalar:tensor(xdesc) beta, object xdesc, device x, object ydesc, device y, object scaledesc, device scale, device bias, device mean, device variance, f64 epsilon)
run cudnnBatchNormalizationForwardTraining(object handle, enum mode, scalar:tensor(xdesc) alpha, scalar:tensor(xdesc) beta, object xdesc, device x, object ydesc, device y, object scaledesc, device scale, device bias, f64 factor, device mean, device variance, f64 epsilon, device savedmean, device savedvariance)
run cudnnBatchNormalizationBackward(object handle, enum mode, scalar:tensor(xdesc) alphadata, scalar:tensor(xdesc) betadata, scalar:tensor(xdesc) alphaparameter, scalar:tensor(xdesc) betaparameter, object xdesc, device x, object dydesc, device dy, object dxdesc, device dx, object scaledesc, device scale, device dscale, device dbias, f64 epsilon, device savedmean, device savedvariance)
run cudnnLRNCrossChannelForward(object handle, object normalization, enum mode, scalar:tensor(xdesc) alpha, object xdesc, device x, scalar:tensor(xdesc) beta, object ydesc, device y)
run cudnnLRNCrossChannelBackward(object handle, object normalization, enum mode, scalar:tensor(xdesc) alpha, object ydesc, device y, object dydesc, device dy, object xdesc, device x, scalar:tensor(xdesc) beta, object dxdesc, device dx)
run cudnn{Pooling,Activation}Forward(object handle, object operation, scalar:tensor(xdesc) alpha, object xdesc, device x, scalar:tensor(xdesc) beta, object ydesc, device y)
run cudnn{Pooling,Activation}Backward(object handle, object operation, scalar:tensor(xdesc) alpha, object ydesc, device y, object dydesc, device dy, object xdesc, device x, scalar:tensor(xdesc) beta, object dxdesc, device dx)
run cudnnSoftmaxForward(object handle, enum algorithm, enum mode, scalar:tensor(xdesc) alpha, object xdesc, device x, scalar:tensor(xdesc) beta, object ydesc, device y)
run cudnnSoftmaxBackward(object handle, enum algorithm, enum mode, scalar:tensor(dxdesc) alpha, object ydesc, device y, object dydesc, device dy, scalar:tensor(dxdesc) beta, object dxdesc, device dx)
read cudnnGetReduction{Indices,Workspace}Size(object handle, object reduction, object a, object c, out:8 bytes)
run cudnnReduceTensor(object handle, object reduction, device indices, u64 indexbytes, device work, u64 workbytes, scalar:tensor(cdesc) alpha, object adesc, device a, scalar:tensor(cdesc) beta, object cdesc, device c)
run cudnnTransformTensor(object handle, scalar:tensor(ydesc) alpha, object xdesc, device x, scalar:tensor(ydesc) beta, object ydesc, device y)
run cudnnAddTensor(object handle, scalar:tensor(cdesc) alpha, object adesc, device a, scalar:tensor(cdesc) beta, object cdesc, device c)
run cudnnDropoutForward(object handle, object dropout, object xdesc, device x, object ydesc, device y, device reserve, u64 bytes)
run cudnnDropoutBackward(object handle, object dropout, object dydesc, device dy, object dxdesc, device dx, device reserve, u64 bytes)

# Recurrent networks, sequences, grids
run cudnnBuildRNNDynamic(object handle, object network, i32 batch)
read cudnnGetRNNWeightSpaceSize(object handle, object network, out:8 bytes)
read cudnnGetRNNTempSpaceSizes(object handle, object network, enum mode, object x, out:8 work, out:8 reserve)
read cudnnGetRNNWeightParams(object handle, object network, i32 layer, u64 bytes, device weights, i32 part, object matrix, out:8 matrixaddress, object bias, out:8 biasaddress)
run cudnnRNNForward(object handle, object network, enum mode, device lengths, object xdesc, device x, object ydesc, device y, optional hdesc, device hx, device hy, optional cdesc, device cx, device cy, u64 weightbytes, device weights, u64 workbytes, device work, u64 reservebytes, device reserve)
run cudnnRNNBackwardData_v8(object handle, object network, device lengths, object ydesc, device y, device dy, object xdesc, device dx, optional hdesc, device hx, device dhy, device dhx, optional cdesc, device cx, device dcy, device dcx, u64 weightbytes, device weights, u64 workbytes, device work, u64 reservebytes, device reserve)
run cudnnRNNBackwardWeights_v8(object handle, object network, enum gradient, device lengths, object xdesc, device x, optional hdesc, device hx, object ydesc, device y, u64 weightbytes, device dweights, u64 workbytes, device work, u64 reservebytes, device reserve)
read cudnnGetCTCLossWorkspaceSize_v8(object handle, enum algorithm, object loss, object probabilities, optional gradients, out:8 bytes)
run cudnnCTCLoss_v8(object handle, enum algorithm, object loss, object probabilitiesdesc, device probabilities, device labels, device labellengths, device inputlengths, device costs, optional gradientsdesc, device gradients, u64 bytes, device work)
read cudnnGetCTCLossWorkspaceSize(object handle, object probabilities, optional gradients, in:4*sum(labellengths) labels, in:4*batch(probabilities) labellengths, in:4*batch(probabilities) inputlengths, enum algorithm, object loss, out:8 bytes)
run cudnnCTCLoss(object handle, object probabilitiesdesc, device probabilities, in:4*sum(labellengths) labels, in:4*batch(probabilitiesdesc) labellengths, in:4*batch(probabilitiesdesc) inputlengths, device costs, optional gradientsdesc, device gradients, enum algorithm, object loss, device work, u64 bytes)
run cudnnSpatialTfGridGeneratorForward(object handle, object transformer, device theta, device grid)
run cudnnSpatialTfGridGeneratorBackward(object handle, object transformer, device dgrid, device dtheta)
run cudnnSpatialTfSamplerForward(object handle, object transformer, scalar:tensor(xdesc) alpha, object xdesc, device x, device grid, scalar:tensor(xdesc) beta, object ydesc, device y)
run cudnnSpatialTfSamplerBackward(object handle, object transformer, scalar:tensor(xdesc) alpha, object xdesc, device x, scalar:tensor(xdesc) beta, object dxdesc, device dx, scalar:tensor(xdesc) alphagrid, object dydesc, device dy, device grid, scalar:tensor(xdesc) betagrid, device dgrid)
",
};
