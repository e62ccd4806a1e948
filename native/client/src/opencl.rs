//! OpenCL, which does not reach the borrowed GPU: see `native/shims/opencl`.

use crate::message;

/// A person with an OpenCL program of their own installs a driver for the processor, which works beside this.
const ADVICE: &str = "OpenCL does not reach the borrowed GPU. Use CUDA instead, for example Numba, CuPy, JAX or PyTorch. \
                      OpenCL on the processor needs PoCL.";

/// A program asks for the OpenCL platforms.
#[unsafe(no_mangle)]
pub extern "C" fn sluice_opencl_asked() {
    // A panic must not cross the border to C; without the sentence the program goes on as well.
    let _ = std::panic::catch_unwind(|| message::tell(message::Kind::Program, ADVICE));
}
