//! Opens the backend that a worker was told to use.

use crate::control::messages::DeviceReport;
use crate::orders::BackendChoice;
use sluice_backend::{CudaResult, Device, ErrorObserver};
use std::sync::Arc;

/// The device behind a report; `exact` has the software GPU check accesses to the byte.
pub fn open(
    backend: &BackendChoice,
    report: &DeviceReport,
    exact: bool,
    observer: ErrorObserver,
) -> CudaResult<Arc<dyn Device>> {
    Ok(match backend {
        BackendChoice::Soft { threads } => Arc::new(sluice_backend::soft::SoftDevice::open(*threads, exact, observer)?),
        BackendChoice::Null { recording } => {
            Arc::new(sluice_backend::null::NullDevice::open(recording.as_deref(), observer)?)
        }
        BackendChoice::Cuda { driver } => {
            Arc::new(sluice_backend::cuda::CudaDevice::open(driver, &report.uuid, observer)?)
        }
    })
}
