//! The supervisor: owns no device.  It admits clients, gives each its worker, and carries out what the broker says.

pub mod accept;
pub mod hello;
mod leases;
pub mod metering;
mod places;
pub mod pool;
mod recalls;
pub mod refusals;
mod seccomp;
mod spawn;
mod unanswered;

use crate::arbiter::Arbiter;
use crate::config::Config;
use crate::control::messages::GpudMessage;
use crate::devices::Offer;
use crate::identity::Identity;
use crate::images::Images;
use crate::orders::{BackendChoice, Report};
use crate::passing::Channel;
use places::Places;
use pool::{Pool, WorkerId};
use recalls::Recalls;
use refusals::Refusals;
use sluice_backend::log;
use sluice_protocol::handshake::{Refused, RefusedCode};
use spawn::Spawner;
use std::io;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use unanswered::Unanswered;

/// See the module.
pub struct Supervisor {
    pub config: Config,
    /// What the workers open.
    backend: BackendChoice,
    pub identity: Mutex<Identity>,
    pool: Mutex<Pool>,
    spawner: Mutex<Spawner>,
    images: Images,
    recalls: Recalls,
    pub refusals: Arc<Refusals>,
    /// Where messages for the broker go.
    outgoing: Mutex<Option<Sender<GpudMessage>>>,
}

/// Of the files that gpud may have open, one part in so many is for images.
const IMAGE_SHARE: usize = 4;
/// Likewise for workers, each of which takes one.
const WORKER_SHARE: usize = 4;
/// As many files as gpud makes use of.
const MOST_OPEN_FILES: libc::rlim_t = 16_384;

/// How many files this process may have open from now on: as many as its user may, within reason.
fn open_files() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 1024, rlim_max: 1024 };
    // SAFETY: a live local; what cannot be asked or raised stays as it is.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        let raised = libc::rlimit { rlim_cur: limit.rlim_max.min(MOST_OPEN_FILES).max(limit.rlim_cur), ..limit };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) == 0 {
            limit = raised;
        }
    }
    limit.rlim_cur as usize
}

impl Supervisor {
    /// A supervisor for these devices.
    pub fn new(config: Config, identity: Identity, offer: Offer) -> io::Result<Arc<Supervisor>> {
        // A real driver talks to its kernel modules and to daemons of the host: it keeps the host's namespaces.
        let sandbox = !matches!(offer.backend, BackendChoice::Cuda { .. });
        let spawner = Spawner::start(sandbox, config.worker_env.clone())?;
        let arbiters = offer.devices.iter().map(|device| Ok((device.uuid.clone(), Arbiter::start(config.arbiter)?)));
        let arbiters = arbiters.collect::<io::Result<_>>()?;
        let workers_tell = !matches!(offer.backend, BackendChoice::Cuda { .. });
        let (files, devices) = (open_files(), offer.devices.len());
        let mut pool = Pool::new(offer.devices, arbiters, config.trusted_keys.clone(), workers_tell);
        pool.places = Places::of(devices, files / WORKER_SHARE);
        let supervisor = Arc::new(Supervisor {
            images: Images::new(config.image_limit, files / IMAGE_SHARE),
            config,
            backend: offer.backend,
            identity: Mutex::new(identity),
            pool: Mutex::new(pool),
            spawner: Mutex::new(spawner),
            refusals: Refusals::start()?,
            outgoing: Mutex::new(None),
            recalls: Recalls::default(),
        });
        let following = Arc::clone(&supervisor);
        std::thread::Builder::new().name("recalls".to_owned()).spawn(move || following.follow_recalls())?;
        Ok(supervisor)
    }

    /// What is known now.
    pub fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The name under which tokens address this server: its id in the pool, or its own name before it has one.
    pub fn server_id(&self) -> String {
        let identity = self.identity.lock().unwrap_or_else(PoisonError::into_inner);
        identity.place().map_or_else(|| self.config.name.clone(), |place| place.server_id.clone())
    }

    /// Sends to the broker, if the channel is open; what matters is said again when it opens.
    pub fn tell_broker(&self, message: GpudMessage) {
        if let Some(outgoing) = &*self.outgoing.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = outgoing.send(message);
        }
    }

    /// Opens or closes the way to the broker.
    pub fn set_outgoing(&self, outgoing: Option<Sender<GpudMessage>>) {
        if outgoing.is_none() {
            self.pool().has_newest_keys = false;
        }
        *self.outgoing.lock().unwrap_or_else(PoisonError::into_inner) = outgoing;
    }

    /// Listens to a worker until it ends, then cleans up after it. A worker that ends before it has answered its client
    /// leaves the answer to us.
    fn attend(
        self: Arc<Self>,
        id: WorkerId,
        mut child: Child,
        channel: Arc<Channel>,
        mut unanswered: Option<Unanswered>,
    ) {
        let name = format!("worker-{}", child.id());
        let attended = std::thread::Builder::new().name(name).spawn(move || {
            loop {
                match channel.receive() {
                    Ok(Some((report, descriptors))) => {
                        if matches!(report, Report::Opened | Report::Refused { .. }) {
                            unanswered = None;
                        }
                        self.heard(id, report, descriptors);
                    }
                    Ok(None) => break,
                    Err(error) => {
                        log!("gpud: worker {} is ended, its report cannot be read: {error}", child.id());
                        break;
                    }
                }
            }
            let _ = child.kill();
            let ended = child.wait();
            // First its seat is free, so that the client can try again at once.
            self.worker_gone(id);
            if let Some(unanswered) = unanswered {
                self.answer_for_worker(unanswered, ended);
            }
        });
        if let Err(error) = attended {
            log!("gpud: cannot listen to a worker: {error}");
        }
    }

    /// Refuses the client of a worker that has ended without an answer.
    fn answer_for_worker(&self, unanswered: Unanswered, ended: io::Result<ExitStatus>) {
        let ended = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
        let text = format!("the worker process of the session ended before it answered ({ended})");
        let end_reason = self.pool().end_reason(&unanswered.lease_id).map(str::to_owned);
        let logged = match &end_reason {
            Some(reason) => format!("{text}; lease {} is over: {reason}", unanswered.lease_id),
            None => text.clone(),
        };
        self.refusals.note(&io::Error::new(io::ErrorKind::PermissionDenied, logged));
        let refusal = match end_reason {
            Some(reason) => Refused { code: RefusedCode::Lease, text: reason },
            None => Refused { code: RefusedCode::Unavailable, text },
        };
        // A client that is gone as well needs no answer.
        let _ = unanswered.refuse(&refusal);
    }
}
