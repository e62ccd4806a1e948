//! The devices that this host offers.

use crate::config::Config;
use crate::control::messages::{DeviceProfile, DeviceReport};
use crate::links;
use crate::orders::BackendChoice;
use sluice_backend::DeviceDescription;
use sluice_backend::log;
use std::io::{self, Write};
use std::process::Command;

/// What this host lends.
#[derive(Clone, Debug)]
pub struct Offer {
    pub backend: BackendChoice,
    pub devices: Vec<DeviceReport>,
}

/// Chooses the backend and names its devices.
pub fn offered(config: &Config) -> io::Result<Offer> {
    let backend = match &config.backend {
        Some(BackendChoice::Cuda { driver }) => {
            return Ok(Offer {
                devices: real(driver, &config.nvml)?,
                backend: BackendChoice::Cuda { driver: driver.clone() },
            });
        }
        Some(backend) => backend.clone(),
        None => match real(&config.driver, &config.nvml) {
            Ok(devices) => {
                return Ok(Offer { backend: BackendChoice::Cuda { driver: config.driver.clone() }, devices });
            }
            Err(error) => {
                log!("gpud: {error}; lends the software GPU instead");
                BackendChoice::Soft { threads: 0 }
            }
        },
    };
    let describe = match backend {
        BackendChoice::Null { .. } => sluice_backend::null::describe,
        _ => sluice_backend::soft::describe,
    };
    let devices = describe(config.soft_devices, config.soft_memory, &host_id(config));
    Ok(Offer { backend, devices: devices.into_iter().map(report).collect() })
}

/// The driver's devices, at least one.  The driver is asked by a process of its own, so that the supervisor never
/// holds a context; the management library tells how they are linked.
fn real(driver: &str, nvml: &str) -> io::Result<Vec<DeviceReport>> {
    let output = Command::new("/proc/self/exe").args(["probe", driver]).output()?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        let reason = reason.trim().trim_start_matches("gpud: ");
        return Err(io::Error::other(format!("no usable CUDA driver on this host ({reason})")));
    }
    let mut devices: Vec<DeviceReport> = serde_json::from_slice(&output.stdout)?;
    if devices.is_empty() {
        Err(io::Error::other("the CUDA driver of this host reports no device"))
    } else {
        links::find(&mut devices, nvml);
        Ok(devices)
    }
}

/// Prints the driver's devices as JSON: the body of `gpud probe`.
pub fn probe(driver: &str) -> io::Result<()> {
    let devices = sluice_backend::cuda::describe(driver).map_err(|error| io::Error::other(error.to_string()))?;
    let reports: Vec<DeviceReport> = devices.into_iter().map(report).collect();
    writeln!(io::stdout(), "{}", serde_json::to_string(&reports)?)
}

/// Prints what would be offered: the body of `gpud devices`.
pub fn print(config: &Config) -> io::Result<()> {
    writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&offered(config)?.devices)?)
}

/// What distinguishes this gpud's devices from those of any other: the state directory's own key.
fn host_id(config: &Config) -> Vec<u8> {
    let identity = crate::identity::Identity::open(&config.state);
    identity.map(|identity| identity.public_key().into_bytes()).unwrap_or_else(|_| config.name.clone().into_bytes())
}

fn report(device: DeviceDescription) -> DeviceReport {
    let attributes = device.profile.attributes.iter().map(|(number, value)| (number.to_string(), *value));
    DeviceReport {
        uuid: device.uuid,
        index: device.index,
        gpu_type: device.gpu_type,
        model: device.model,
        memory_bytes: device.memory_bytes,
        link_group: None,
        profile: DeviceProfile {
            name: device.profile.name,
            compute_capability_major: device.profile.compute_capability.0,
            compute_capability_minor: device.profile.compute_capability.1,
            total_memory_bytes: device.profile.total_memory_bytes,
            driver_version: device.profile.driver_version,
            driver: device.profile.driver,
            attributes: attributes.collect(),
        },
    }
}
