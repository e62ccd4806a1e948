//! The line of the pool page, run as it was pasted, and what is said where it cannot work.

use crate::support::broker::{Broker, SERVER_ID};
use crate::support::unique;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A host without a usable driver, and the processes that run on it.
struct Host {
    home: PathBuf,
    child: Option<Child>,
}

impl Host {
    fn new() -> Host {
        let home = std::env::temp_dir().join(format!("gpud-join-{}-{}", std::process::id(), unique()));
        std::fs::create_dir_all(&home).expect("directory");
        // The loader finds this one first and cannot use it.
        std::fs::write(home.join("libcuda.so.1"), "not a library").expect("file");
        Host { home, child: None }
    }

    fn gpud(&self, line: &str) -> Command {
        let mut command = Command::new(sluice_testing::program("gpud"));
        command.args(line.split_whitespace()).env("LD_LIBRARY_PATH", &self.home);
        command.env("HOME", &self.home).env_remove("XDG_STATE_HOME");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Exit code and what was said, of a line that ends by itself.
    fn says(&self, line: &str) -> (Option<i32>, String) {
        let output = self.gpud(line).output().expect("gpud runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// The ready line's address; `meet` plays the broker meanwhile.
    fn starts(&mut self, line: &str, meet: impl FnOnce()) -> String {
        let mut child = self.gpud(line).spawn().expect("gpud starts");
        let stdout = child.stdout.take().expect("piped");
        self.child = Some(child);
        meet();
        let mut ready = String::new();
        BufReader::new(stdout).read_line(&mut ready).expect("ready line");
        let ready: Value = serde_json::from_str(&ready).expect("JSON");
        ready["address"].as_str().expect("address").to_owned()
    }

    /// Ends the running gpud; what it said.
    fn stop(&mut self) -> String {
        let mut child = self.child.take().expect("started");
        child.kill().expect("killed");
        child.wait().expect("ended");
        let mut said = String::new();
        child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
        said
    }

    fn state(&self) -> PathBuf {
        self.home.join(".local/state/sluice-gpud")
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.home);
    }
}

#[test]
fn the_pasted_line_is_enough() {
    let mut broker = Broker::new();
    let mut host = Host::new();
    let line = format!("join {} --token slj_t", broker.url);
    let address = host.starts(&line, || broker.admit("slj_t"));
    let port: u16 = address.strip_prefix("tcp://127.0.0.1:").expect("local").parse().expect("port");
    assert!((3010..3110).contains(&port), "{address}");
    let hello = broker.welcome(1, &[]);
    assert_eq!(hello["dataAddress"], address.as_str());
    assert_eq!(hello["devices"].as_array().map(Vec::len), Some(1), "{hello}");
    assert!(host.state().join("server.json").exists());
    // A second gpud of this host takes another port.
    let mut other = Host::new();
    let mut second = Broker::new();
    let line = format!("join {} --token slj_u", second.url);
    assert_ne!(other.starts(&line, || second.admit("slj_u")), address);
    let said = host.stop();
    assert!(said.contains("software GPU") && said.contains(SERVER_ID), "{said}");
}

#[test]
fn what_fails_on_this_host_costs_no_token() {
    let broker = Broker::new();
    let host = Host::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("port");
    let at = taken.local_addr().expect("address");
    let (code, said) = host.says(&format!("join {} --token slj_t --listen {at}", broker.url));
    assert_eq!(code, Some(1));
    assert!(said.contains(&at.to_string()) && said.contains("--listen"), "{said}");
    let (code, said) = host.says(&format!("join {} --token slj_t --listen 127.0.0.1:0 --backend cuda", broker.url));
    assert_eq!(code, Some(1));
    assert!(said.contains("no usable CUDA driver"), "{said}");
    assert!(!broker.called());
}

#[test]
fn a_socket_of_the_parent_keeps_its_port_while_gpud_is_away() {
    let held = TcpListener::bind("127.0.0.1:0").expect("port");
    let at = held.local_addr().expect("address");
    // SAFETY: an open descriptor; programs inherit its copy, which stays open until this process ends.
    let copy = unsafe { libc::fcntl(held.as_raw_fd(), libc::F_DUPFD, 3) };
    let mut broker = Broker::new();
    let mut host = Host::new();
    let line = format!("join {} --token slj_t --backend soft --listen {at} --listen-fd {copy}", broker.url);
    assert_eq!(host.starts(&line, || broker.admit("slj_t")), format!("tcp://{at}"));
    broker.welcome(1, &[]);
    host.stop();
    broker.hang_up();
    // Not refused: the connection waits for the next gpud.
    let waiting = TcpStream::connect(at).expect("connects");
    host.starts(&line, || {
        broker.welcome(2, &[]);
    });
    waiting.set_read_timeout(Some(Duration::from_secs(10))).expect("sets a limit");
    assert_eq!((&waiting).read(&mut [0]).expect("gpud speaks first"), 1);
}

#[test]
fn the_same_line_goes_on_and_a_new_token_is_not_spent_on_a_server_that_has_joined() {
    let mut broker = Broker::new();
    let mut host = Host::new();
    let line = |token: &str| format!("join {} --token {token} --backend soft --listen 127.0.0.1:0", broker.url);
    let (first, next) = (line("slj_t"), line("slj_next"));
    host.starts(&first, || broker.admit("slj_t"));
    broker.welcome(1, &[]);
    host.stop();
    broker.hang_up();
    // No join: the broker hears from the control channel at once.
    host.starts(&first, || {
        broker.welcome(2, &[]);
    });
    host.stop();
    broker.hang_up();
    let (code, said) = host.says(&next);
    assert_eq!(code, Some(1));
    for word in [SERVER_ID, "--state", &host.state().display().to_string(), "was not used"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(!broker.called());
}

#[test]
fn a_pod_joins_by_its_account_and_tells_it_anew_at_each_connection() {
    let mut broker = Broker::new();
    let mut host = Host::new();
    let file = host.home.join("token");
    let line = format!("--broker {} --account {} --backend soft --listen 127.0.0.1:0", broker.url, file.display());
    let (code, said) = host.says(&line);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&file.display().to_string()), "{said}");
    std::fs::write(&file, "eyJ.first\n").expect("file");
    host.starts(&line, || broker.admit("eyJ.first"));
    assert_eq!(broker.welcome(1, &[])["account"], "eyJ.first");
    // The cluster has replaced it meanwhile.
    std::fs::write(&file, "eyJ.second\n").expect("file");
    broker.hang_up();
    assert_eq!(broker.welcome(2, &[])["account"], "eyJ.second");
    host.stop();
    broker.hang_up();
    // The next pod there goes on in that place, and is told by its own; without one it is told by none.
    std::fs::write(&file, "eyJ.third\n").expect("file");
    let mut hello = Value::Null;
    host.starts(&line, || hello = broker.welcome(3, &[]));
    assert_eq!(hello["account"], "eyJ.third");
    std::fs::remove_file(&file).expect("file");
    broker.hang_up();
    assert_eq!(broker.welcome(4, &[]).get("account"), None);
    let said = host.stop();
    assert!(said.contains(&file.display().to_string()), "{said}");
}
