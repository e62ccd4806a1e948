//! The command line.

use crate::config::{Config, parse_bytes, parse_listen, read_token};
use crate::orders::BackendChoice;
use crate::supervisor::hello::read_key;
use sluice_backend::cuda::{DRIVER, NVML};
use sluice_protocol::handshake::RETURN_SECONDS;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the user wants.
#[derive(Clone, Debug)]
pub enum Invocation {
    Help,
    Version,
    /// Inside: a worker process.
    Worker,
    /// Inside: name the devices of the driver in this library.
    Probe {
        driver: String,
    },
    /// Inside: tell which of these devices reach each other over NVLink, by the management library in this file.
    Links {
        library: String,
        uuids: Vec<String>,
    },
    /// Inside: tell what the multiprocessors of these devices do, by the management library in this file.
    Meter {
        library: String,
        uuids: Vec<String>,
    },
    /// Print the devices that these options offer, as JSON.
    Devices {
        config: Box<Config>,
    },
    /// Run, after joining with this token if there is one.
    Run {
        config: Box<Config>,
        token: Option<String>,
    },
}

/// `gpud --help`.
pub const HELP: &str = "\
Lends the GPUs of this host.

  gpud join URL --token TOKEN [options]    join a pool, then run (the pool page shows this line)
  gpud [options]                           run as a server that has joined before
  gpud devices [options]                   print the devices that would be offered, as JSON

  --token TOKEN          one-time token of the pool page (also --join-token)
  --token-file FILE      a file with the token: other processes can read a program's arguments
  --account FILE         on a cluster, a file with the token of this pod's account: it joins a pool without a token of the
                         pool page, and tells the broker at each connection in which pod gpud runs
  --broker URL           the broker (default: the one that was joined)
  --state DIR            key and place in the pool; one for each gpud of a host
                         (default: $XDG_STATE_HOME/sluice-gpud or ~/.local/state/sluice-gpud)
  --listen ADDRESS       HOST:PORT or unix:///PATH; TLS on any address that is not local (default: 0.0.0.0:3010;
                         for a broker on this host 127.0.0.1 and the first free port from 3010 on)
  --listen-fd NUMBER     the inherited descriptor of a TCP socket that listens at --listen already: a parent process keeps
                         the port while gpud restarts
  --advertise HOST:PORT  how clients reach this host, when it is not the address above
  --backend NAME         auto, cuda, soft or null (default: auto: cuda if its driver reports a device, else soft)
  --driver LIBRARY       the CUDA driver's library, by name or path (default: libcuda.so.1)
  --nvml LIBRARY         NVIDIA's management library, which tells how busy a card's multiprocessors are and which cards
                         NVLink joins (default: libnvidia-ml.so.1; without it that is not known)
  --worker-env NAME      a variable of gpud's environment that the driver and its libraries read in workers; they see
                         LD_LIBRARY_PATH, CUDA_VISIBLE_DEVICES and nothing else (repeatable)
  --name NAME            how the pool page calls this server (default: the host's name)
  --soft-devices N       how many software GPUs (default: 1)
  --soft-memory BYTES    memory of each (default: 8G)
  --park-limit BYTES     host memory for parked leases (default: 4G)
  --image-limit BYTES    host memory for modules' code that clients have sent, so that it is sent once (default: 1G)
  --sockets DIR          also listen at DIR/<this server's id>.sock, for workspaces on this host: they share memory with
                         gpud for large copies
  --return-time SECONDS  how long a client whose connection was cut may take to come back (default: 30)
  --arbiter on|off       whether leases on one device get their shares of it (default: on; off to measure what it does)
  --peer-memory on|off   whether GPUs of a lease reach each other's memory where their driver can do that (default: on; off
                         for a host whose address translation, its IOMMU, does not let them: copies go another way)
  --trust-key KID=KEY    admit session tokens that this Ed25519 key signed (for tests; repeatable)
  --recording FILE       where the null backend writes what it was asked to do
";

/// Reads the arguments after the program's name.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Invocation, String> {
    let mut arguments = arguments.into_iter().peekable();
    let mut broker = None;
    let mut joining = false;
    match arguments.peek().map(String::as_str) {
        Some("worker") => return Ok(Invocation::Worker),
        Some("probe") => {
            arguments.next();
            return Ok(Invocation::Probe { driver: arguments.next().unwrap_or_else(|| DRIVER.to_owned()) });
        }
        Some("links") => {
            arguments.next();
            let library = arguments.next().unwrap_or_else(|| NVML.to_owned());
            return Ok(Invocation::Links { library, uuids: arguments.collect() });
        }
        Some("meter") => {
            arguments.next();
            let library = arguments.next().unwrap_or_else(|| NVML.to_owned());
            return Ok(Invocation::Meter { library, uuids: arguments.collect() });
        }
        _ => {}
    }
    let mut devices = false;
    let mut token = None;
    let mut account = None;
    let mut state = None;
    let mut listen = None;
    let mut listen_descriptor = None;
    let mut advertise = None;
    let mut backend = "auto".to_owned();
    let mut name = None;
    let mut driver = DRIVER.to_owned();
    let mut nvml = NVML.to_owned();
    let mut worker_env = Vec::new();
    let mut soft_devices = 1;
    let mut soft_memory = 8 << 30;
    let mut park_limit = 4 << 30;
    let mut image_limit = 1 << 30;
    let mut sockets = None;
    let mut return_seconds = RETURN_SECONDS;
    let mut arbiter = true;
    let mut peer_memory = true;
    let mut recording = None;
    let mut trusted_keys = crate::token::Keys::new();
    while let Some(argument) = arguments.next() {
        let (flag, inline) = match argument.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => (flag.to_owned(), Some(value.to_owned())),
            _ => (argument, None),
        };
        let mut value = || inline.clone().or_else(|| arguments.next()).ok_or(format!("{flag} needs a value"));
        match flag.as_str() {
            "join" if !joining && !devices => joining = true,
            "devices" if !joining && !devices => devices = true,
            "join" | "devices" => return Err(format!("{flag}: a second command; gpud takes one")),
            "--help" | "-h" => return Ok(Invocation::Help),
            "--version" | "-V" => return Ok(Invocation::Version),
            "--broker" => broker = Some(value()?),
            "--token" | "--join-token" => token = Some(value()?),
            "--token-file" => {
                token = Some(read_token(Path::new(&value()?)).map_err(|error| format!("--token-file {error}"))?);
            }
            "--account" => account = Some(PathBuf::from(value()?)),
            "--state" => state = Some(PathBuf::from(value()?)),
            "--listen" => listen = Some(parse_listen(&value()?)?),
            "--listen-fd" => listen_descriptor = Some(descriptor(&value()?)?),
            "--advertise" => advertise = Some(value()?),
            "--backend" => backend = value()?,
            "--driver" => driver = value()?,
            "--nvml" => nvml = value()?,
            "--worker-env" => worker_env.push(value()?),
            "--name" => name = Some(value()?),
            "--soft-devices" => soft_devices = number(&value()?)?,
            "--soft-memory" => soft_memory = parse_bytes(&value()?)?,
            "--park-limit" => park_limit = parse_bytes(&value()?)?,
            "--image-limit" => image_limit = parse_bytes(&value()?)?,
            "--sockets" => sockets = Some(PathBuf::from(value()?)),
            "--return-time" => return_seconds = seconds(&value()?)?,
            "--arbiter" => arbiter = on_or_off(&flag, &value()?)?,
            "--peer-memory" => peer_memory = on_or_off(&flag, &value()?)?,
            "--recording" => recording = Some(value()?),
            "--trust-key" => {
                let text = value()?;
                let (kid, key) = text.split_once('=').ok_or("--trust-key: use KID=KEY")?;
                trusted_keys.insert(kid.to_owned(), read_key(key)?);
            }
            // The broker's URL, before or after options.
            address if joining && broker.is_none() && !address.starts_with('-') => broker = Some(address.to_owned()),
            _ => return Err(format!("{flag}: not known; gpud --help lists what is")),
        }
    }
    if joining && broker.is_none() {
        return Err("gpud join: the broker's URL is missing; the pool page shows the whole line".to_owned());
    }
    if joining && token.is_none() {
        return Err("gpud join: --token is missing; the pool page shows the whole line".to_owned());
    }
    if listen_descriptor.is_some() && listen.is_none() {
        return Err("--listen-fd: --listen is missing; name the address of the socket".to_owned());
    }
    let backend = match backend.as_str() {
        "auto" => None,
        "soft" => Some(BackendChoice::Soft { threads: 0 }),
        "null" => Some(BackendChoice::Null { recording }),
        "cuda" => Some(BackendChoice::Cuda { driver: driver.clone() }),
        other => return Err(format!("--backend {other}: use auto, cuda, soft or null")),
    };
    let config = Config {
        state: state.unwrap_or_else(default_state),
        broker,
        account,
        listen,
        listen_descriptor,
        advertise,
        name: name.unwrap_or_else(host_name),
        backend,
        driver,
        nvml,
        worker_env,
        soft_devices,
        soft_memory,
        park_limit,
        image_limit,
        sockets,
        return_time: Duration::from_secs(return_seconds),
        arbiter,
        peer_memory,
        trusted_keys,
    };
    let config = Box::new(config);
    Ok(if devices { Invocation::Devices { config } } else { Invocation::Run { config, token } })
}

fn number(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(number @ 1..=64) => Ok(number),
        _ => Err(format!("{text}: use a number from 1 to 64")),
    }
}

fn descriptor(text: &str) -> Result<RawFd, String> {
    match text.parse() {
        Ok(number @ 3..) => Ok(number),
        _ => Err(format!("--listen-fd {text}: use a descriptor from 3 on")),
    }
}

fn on_or_off(flag: &str, text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        other => Err(format!("{flag} {other}: use on or off")),
    }
}

fn seconds(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(seconds @ 1..=3600) => Ok(seconds),
        _ => Err(format!("{text}: use seconds, from 1 to 3600")),
    }
}

fn default_state() -> PathBuf {
    let home = std::env::var_os("HOME").map_or_else(|| PathBuf::from("."), PathBuf::from);
    std::env::var_os("XDG_STATE_HOME").map_or(home.join(".local/state"), PathBuf::from).join("sluice-gpud")
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "gpud".to_owned() } else { name.trim().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Invocation, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn joining_names_broker_and_token() {
        let Ok(Invocation::Run { config, token }) = parsed("join http://b:1 --token slj_x --name two --backend=null")
        else {
            panic!("not read")
        };
        assert_eq!((config.broker.as_deref(), token.as_deref()), (Some("http://b:1"), Some("slj_x")));
        assert_eq!((config.name.as_str(), &config.backend), ("two", &Some(BackendChoice::Null { recording: None })));
    }

    #[test]
    fn options_may_come_before_the_command_and_its_address() {
        for line in [
            "join http://b:1 --token slj_x --state /s",
            "--state /s join http://b:1 --token slj_x",
            "--token slj_x join --state /s http://b:1",
        ] {
            let Ok(Invocation::Run { config, token }) = parsed(line) else { panic!("{line}: not read") };
            assert_eq!((config.broker.as_deref(), token.as_deref()), (Some("http://b:1"), Some("slj_x")), "{line}");
            assert_eq!(config.state, PathBuf::from("/s"), "{line}");
        }
        assert!(
            matches!(parsed("--soft-devices 2 devices"), Ok(Invocation::Devices { config }) if config.soft_devices == 2)
        );
        assert!(parsed("join http://b:1 http://c:1 --token x").expect_err("two").contains("http://c:1: not known"));
        assert!(parsed("join --token x devices").expect_err("two commands").contains("devices: a second command"));
    }

    #[test]
    fn the_token_may_be_in_a_file() {
        let file = std::env::temp_dir().join(format!("sluice-token-{}", std::process::id()));
        std::fs::write(&file, "eyJ.x\n").expect("writes");
        let line = format!("join http://b:1 --token-file {}", file.display());
        let Ok(Invocation::Run { token, .. }) = parsed(&line) else { panic!("not read") };
        assert_eq!(token.as_deref(), Some("eyJ.x"));
        std::fs::remove_file(&file).expect("removes");
        assert!(parsed(&line).expect_err("no such file").contains("--token-file"));
    }

    #[test]
    fn the_bare_line_leaves_backend_and_address_to_the_host() {
        let Ok(Invocation::Run { config, .. }) = parsed("join http://b:1 --token slj_x") else { panic!("not read") };
        assert_eq!((&config.backend, &config.listen), (&None, &None));
    }

    #[test]
    fn the_driver_is_where_the_line_says() {
        let line = "--broker http://b:1 --backend cuda --driver /opt/cuda/libcuda.so --worker-env NCCL_DEBUG";
        let Ok(Invocation::Run { config, .. }) = parsed(line) else { panic!("not read") };
        assert_eq!(config.backend, Some(BackendChoice::Cuda { driver: "/opt/cuda/libcuda.so".to_owned() }));
        assert_eq!(config.worker_env, ["NCCL_DEBUG"]);
        assert!(matches!(parsed("meter a.so GPU-1 GPU-2"), Ok(Invocation::Meter { library, uuids })
            if library == "a.so" && uuids == ["GPU-1", "GPU-2"]));
        assert!(matches!(parsed("links a.so GPU-1"), Ok(Invocation::Links { library, uuids })
            if library == "a.so" && uuids == ["GPU-1"]));
        assert!(matches!(parsed("probe"), Ok(Invocation::Probe { driver }) if driver == "libcuda.so.1"));
    }

    #[test]
    fn an_inherited_socket_comes_with_its_address() {
        let Ok(Invocation::Run { config, .. }) = parsed("--broker http://b:1 --listen 127.0.0.1:3010 --listen-fd 3")
        else {
            panic!("not read")
        };
        assert_eq!(config.listen_descriptor, Some(3));
        assert!(parsed("--listen-fd 3").expect_err("no address").contains("--listen is missing"));
        assert!(parsed("--listen 127.0.0.1:1 --listen-fd 2").expect_err("stderr").contains("from 3 on"));
    }

    #[test]
    fn help_is_given_wherever_it_is_asked_for() {
        for line in ["--help", "-h", "join --help", "join http://b:1 --help", "devices --help"] {
            assert!(matches!(parsed(line), Ok(Invocation::Help)), "{line}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        assert!(parsed("join --token slj_x").expect_err("no broker").contains("URL"));
        assert!(parsed("join http://b:1 --token slj_x --lissten x").expect_err("no such").contains("--lissten"));
        assert!(parsed("join http://b:1").expect_err("no token").contains("--token"));
        assert!(parsed("--backend cloud").expect_err("no such").contains("auto, cuda, soft or null"));
        assert!(parsed("--return-time 0").expect_err("too short").contains("1 to 3600"));
        for flag in ["--arbiter", "--peer-memory"] {
            let mistake = parsed(&format!("{flag} yes")).expect_err("neither");
            assert_eq!(mistake, format!("{flag} yes: use on or off"));
        }
        assert!(parsed("--brokr x").expect_err("no such").contains("--brokr"));
        assert!(parsed("--trust-key k=short").is_err());
    }
}
