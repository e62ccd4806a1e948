//! Starts a gpud for tests and benchmarks, and finds what cargo built.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The folder with `gpud`, `libcuda.so` and `libsluice_client.so`: `SLUICE_NATIVE_DIR`, else where this program was
/// built (they are built first when cargo runs us).
pub fn native_dir() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        if let Some(folder) = std::env::var_os("SLUICE_NATIVE_DIR") {
            return folder.into();
        }
        let program = std::env::current_exe().unwrap_or_default();
        let folder = program
            .ancestors()
            .find(|folder| folder.ends_with("debug") || folder.ends_with("release"))
            .map_or_else(PathBuf::new, Path::to_path_buf);
        let by_cargo = std::env::var_os("CARGO").zip(std::env::var_os("CARGO_MANIFEST_DIR"));
        if let (Some((cargo, package)), Some(target)) = (by_cargo, folder.parent()) {
            let mut build = Command::new(cargo);
            // What cargo told this package would look like a change to build scripts that read it, and everything
            // would be built again, here and by the next cargo outside.
            let told = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_", "OUT_DIR"];
            for (name, _) in std::env::vars_os() {
                if told.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
                    build.env_remove(name);
                }
            }
            build.current_dir(package).arg("build").arg("--quiet").arg("--target-dir").arg(target);
            build.args(["-p", "sluice-gpud", "-p", "sluice-shim-cuda", "-p", "sluice-client"]);
            build.args(["-p", "sluice-shim-cudart12", "-p", "sluice-shim-cudart13"]);
            build.args(["-p", "sluice-shim-nvml", "-p", "sluice-shim-opencl", "-p", "sluice-shim-libraries"]);
            if folder.ends_with("release") {
                build.arg("--release");
            }
            let built = build.status().is_ok_and(|status| status.success());
            assert!(built, "gpud and the shim do not build");
        }
        folder
    })
}

/// Our libraries, as programs look for them and as cargo calls them.
const LIBRARIES: [(&str, &str); 5] = [
    ("libsluice_client.so", "libsluice_client.so"),
    ("libcuda.so.1", "libcuda.so"),
    ("libnvidia-ml.so.1", "libnvidia_ml.so"),
    ("libcudart.so.12", "libcudart12.so"),
    ("libcudart.so.13", "libcudart13.so"),
];

/// The libraries beside the driver, by the names that programs use.
pub fn libraries_beside() -> std::io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(native_dir().join("libraries"))?;
    let mut all = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<PathBuf>>>()?;
    all.sort();
    Ok(all)
}

/// Our libraries: their names for programs, and where they lie.
pub fn all_libraries() -> std::io::Result<Vec<(PathBuf, PathBuf)>> {
    // A pack that was made to be carried has them under the names of programs.
    let lies = |name: &str, built: &str| {
        let named = native_dir().join(name);
        if named.exists() { named } else { native_dir().join(built) }
    };
    let mut all: Vec<(PathBuf, PathBuf)> =
        LIBRARIES.iter().map(|(name, built)| (name.into(), lies(name, built))).collect();
    for path in libraries_beside()? {
        all.push((path.file_name().unwrap_or_default().into(), path));
    }
    Ok(all)
}

/// Puts our libraries into a folder for a program's library path.
pub fn link_libraries(folder: &Path) -> std::io::Result<()> {
    // Tests that share a folder link at the same time: a link is made aside and takes its place at once.
    static COUNT: AtomicU32 = AtomicU32::new(0);
    for (name, built) in all_libraries()? {
        let aside = folder.join(format!(".link-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
        std::os::unix::fs::symlink(built, &aside)?;
        std::fs::rename(aside, folder.join(name))?;
    }
    Ok(())
}

/// A gpud of our own; ended with the value.
pub struct Gpud {
    child: Child,
    pub address: String,
    /// UUIDs of its devices.
    pub devices: Vec<String>,
    /// The device as gpud reports it to a broker.
    pub device: Value,
    /// Of gpud's certificate, when it listens at a `tls://` address.
    pub fingerprint: Option<[u8; 32]>,
    /// What its leases never get more than, in thousandths of a device; none as it starts.
    pub ceiling_milli: Option<u32>,
    key: Ed25519KeyPair,
    state: PathBuf,
}

/// The command is ended when the thread that starts it is gone, however this program ends.
pub fn ends_with_us(command: &mut Command) {
    // SAFETY: prctl is allowed between fork and exec.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
            Ok(())
        });
    }
}

impl Gpud {
    /// Starts `gpud --backend BACKEND` on a free port, trusting this program's tokens.
    pub fn start(backend: &str, options: &[&str]) -> Result<Self, String> {
        Self::start_with(backend, options, None)
    }

    /// As [`Gpud::start`], in a pool whose broker is at this URL if one is given.
    pub fn start_with(backend: &str, options: &[&str], broker: Option<&str>) -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let key = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).map_err(|error| error.to_string())?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let state = std::env::temp_dir().join(format!("sluice-conformance-{}-{number}", std::process::id()));
        let trusted = format!("k1={}", URL_SAFE_NO_PAD.encode(key.public_key().as_ref()));
        let program = native_dir().join("gpud");
        let common = ["--state", &state.display().to_string(), "--name", "conformance", "--backend", backend]
            .map(str::to_owned)
            .to_vec();
        let failed = |error: std::io::Error| format!("{}: {error}", program.display());
        let listed = Command::new(&program).arg("devices").args(&common).args(options).output().map_err(failed)?;
        if !listed.status.success() {
            return Err(String::from_utf8_lossy(&listed.stderr).trim().to_owned());
        }
        let mut devices: Value = serde_json::from_slice(&listed.stdout).map_err(|error| error.to_string())?;
        let uuids: Vec<String> =
            devices.as_array().into_iter().flatten().filter_map(|one| Some(one["uuid"].as_str()?.to_owned())).collect();
        if uuids.is_empty() {
            return Err("gpud names no device".into());
        }
        let mut command = Command::new(&program);
        ends_with_us(&mut command);
        let joined = broker.map(|url| ["join", url, "--token", "slj_conformance"]);
        let mut child = command
            .args(joined.into_iter().flatten())
            .args(&common)
            .args(["--trust-key", &trusted])
            .args(if options.iter().any(|option| option.starts_with("--listen")) {
                &[][..]
            } else {
                &["--listen", "127.0.0.1:0"]
            })
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line).map_err(failed)?;
        }
        let ready: Value = serde_json::from_str(&line).map_err(|error| format!("gpud said {line:?}: {error}"))?;
        let address = ready["address"].as_str().ok_or("gpud names no address")?.to_owned();
        let fingerprint = ready["tlsFingerprint"]
            .as_str()
            .and_then(|text| URL_SAFE_NO_PAD.decode(text).ok())
            .and_then(|bytes| bytes.try_into().ok());
        let device = devices[0].take();
        Ok(Self { child, address, devices: uuids, device, fingerprint, ceiling_milli: None, key, state })
    }

    /// A session token as the broker makes them, for half of the first device.
    pub fn token(&self, public_key: &str, lease: &str, memory_bytes: u64) -> String {
        self.token_for_share(public_key, lease, 500, memory_bytes)
    }

    /// The same for another share, in thousandths of the device.
    pub fn token_for_share(&self, public_key: &str, lease: &str, milli: u32, memory_bytes: u64) -> String {
        self.token_on(0, public_key, lease, milli, memory_bytes)
    }

    /// The same on another of its devices.
    pub fn token_on(&self, device: usize, public_key: &str, lease: &str, milli: u32, memory_bytes: u64) -> String {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let mut claims = serde_json::json!({
            "iss": "sluice", "aud": "gpud:conformance", "sub": "ws-conformance", "jti": format!("j{number}"),
            "iat": now, "exp": now + 600, "sid": format!("gws-{number}"), "cnf": { "ed25519": public_key },
            "lease": {
                "id": lease, "epoch": 1, "deviceUuid": self.devices[device], "milli": milli,
                "memoryBytes": memory_bytes, "gpuType": self.gpu_type(), "expiresAt": now + 3600,
            },
        });
        if let Some(milli) = self.ceiling_milli {
            claims["lease"]["ceilingMilli"] = milli.into();
        }
        let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"EdDSA","kid":"k1","typ":"JWT"}"#);
        let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
        let signature = URL_SAFE_NO_PAD.encode(self.key.sign(signed.as_bytes()).as_ref());
        format!("{signed}.{signature}")
    }

    /// What a lease on the device is a lease of.
    pub fn gpu_type(&self) -> &str {
        self.device["gpuType"].as_str().unwrap_or("soft")
    }

    /// CPU time of gpud and its workers so far, microseconds.
    pub fn cpu_us(&self) -> u64 {
        let of = |pid: u32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split_whitespace().collect();
            let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
            (ticks(11) + ticks(12)) * 10_000
        };
        of(self.child.id()) + self.workers().into_iter().map(of).sum::<u64>()
    }

    /// Memory of gpud and its workers that is not a file's, bytes: their own and what is lent.
    pub fn held_bytes(&self) -> u64 {
        let of = |pid: u32| {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let fields = status.lines().filter(|line| line.starts_with("RssAnon:") || line.starts_with("RssShmem:"));
            fields.filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum::<u64>()
        };
        1024 * (of(self.child.id()) + self.workers().into_iter().map(of).sum::<u64>())
    }

    /// Process ids of gpud's workers, the one made ahead among them.
    pub fn workers(&self) -> Vec<u32> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).into_iter().flatten().flatten();
        let children = |task: std::fs::DirEntry| {
            let text = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            text.split_whitespace().filter_map(|child| child.parse().ok()).collect::<Vec<u32>>()
        };
        tasks.flat_map(children).collect()
    }

    /// Whether a worker has a client: it has more than its main thread.
    pub fn serves(&self, worker: u32) -> bool {
        std::fs::read_dir(format!("/proc/{worker}/task")).is_ok_and(|tasks| tasks.count() > 1)
    }
}

impl Drop for Gpud {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.state);
    }
}
