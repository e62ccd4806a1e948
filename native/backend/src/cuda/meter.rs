//! What NVIDIA's management library tells of a host's cards: for how much of the time their multiprocessors held warps,
//! and how much memory each process has.
//!
//! Of the multiprocessors the driver tells it of the card, not of a process.  Cards from Hopper on count it ("SM utilisation" of GPM); others
//! tell only for how much of the time any kernel ran, which is more than that, so it is marked as an estimate.

use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::enums::gpm::GpmMetricId;
use nvml_wrapper::gpm::{GpmSample, gpm_metrics_get};
use nvml_wrapper::{Device, Nvml};
use std::ffi::OsStr;
use std::io;
use std::time::{Duration, Instant};

/// Where the management library is on most hosts.
pub const NVML: &str = "libnvidia-ml.so.1";

/// How it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The card has counted it.
    Counted,
    /// From the time in which any kernel ran.
    Estimated,
}

/// What a card's multiprocessors did since the reading before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    pub uuid: String,
    /// Time in which they held warps, averaged over all of them; nothing when the card did not say.
    pub active: Option<(Duration, Source)>,
}

/// Memory that the processes of one card have, contexts and all: by the system's numbers, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weights {
    pub uuid: String,
    pub processes: Vec<(u32, u64)>,
}

/// Asks the cards of a host.
pub struct Meter {
    nvml: &'static Nvml,
    cards: Vec<Card>,
}

struct Card {
    uuid: String,
    /// Nothing when the library does not know the card by this name, such as a part of one.
    device: Option<Device<'static>>,
    /// Whether it counts, and its counters at the reading before.
    counts: bool,
    before: Option<GpmSample<'static>>,
    at: Instant,
}

impl Meter {
    /// Loads the library, for the life of the process, and begins with these cards.
    pub fn open(library: &str, uuids: &[String]) -> io::Result<Meter> {
        let opened = Nvml::builder().lib_path(OsStr::new(library)).init();
        let nvml: &'static Nvml =
            Box::leak(Box::new(opened.map_err(|error| io::Error::other(format!("{library}: {error}")))?));
        let card = |uuid: &String| {
            let device = nvml.device_by_uuid(uuid.as_str()).ok();
            let counts = device.as_ref().is_some_and(|device| device.gpm_support().unwrap_or(false));
            let before = device.as_ref().filter(|_| counts).and_then(|device| device.gpm_sample().ok());
            // One that has counters and does not let this user read them is asked as one that has none.
            Card { uuid: uuid.clone(), device, counts: before.is_some(), before, at: Instant::now() }
        };
        Ok(Meter { nvml, cards: uuids.iter().map(card).collect() })
    }

    /// What happened since this was asked before, or since the beginning.
    pub fn read(&mut self) -> Vec<Reading> {
        let Meter { nvml, cards } = self;
        cards.iter_mut().map(|card| Reading { uuid: card.uuid.clone(), active: card.read(nvml) }).collect()
    }

    /// What memory the processes of each card have; cards that do not tell are left out.
    pub fn weigh(&self) -> Vec<Weights> {
        self.cards.iter().filter_map(Card::weigh).collect()
    }
}

impl Card {
    fn weigh(&self) -> Option<Weights> {
        let processes = self.device.as_ref()?.running_compute_processes().ok()?;
        let told = processes.into_iter().filter_map(|process| match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some((process.pid, bytes)),
            UsedGpuMemory::Unavailable => None,
        });
        Some(Weights { uuid: self.uuid.clone(), processes: told.collect() })
    }

    fn read(&mut self, nvml: &'static Nvml) -> Option<(Duration, Source)> {
        let device = self.device.as_ref()?;
        let now = if self.counts { device.gpm_sample().ok() } else { None };
        let passed = std::mem::replace(&mut self.at, Instant::now());
        let passed = self.at.saturating_duration_since(passed);
        if !self.counts {
            let percent = device.utilization_rates().ok()?.gpu.min(100);
            return Some((passed.mul_f64(f64::from(percent) / 100.0), Source::Estimated));
        }
        let before = std::mem::replace(&mut self.before, now);
        let metrics = gpm_metrics_get(nvml, &before?, self.before.as_ref()?, &[GpmMetricId::SmUtil]).ok()?;
        let percent = metrics.into_iter().next()?.ok()?.value;
        percent.is_finite().then(|| (passed.mul_f64(percent.clamp(0.0, 100.0) / 100.0), Source::Counted))
    }
}
