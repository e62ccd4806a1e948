//! Makes worker processes: this program again, unprivileged, with nothing but a socket to its supervisor.

use crate::passing::Channel;
use crate::supervisor::seccomp::deny_connections;
use crate::worker::SUPERVISOR_DESCRIPTOR;
use sluice_backend::log;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// The user and group of workers where gpud runs as root: nobody's, who owns no file.
const NOBODY: libc::c_long = 65534;

/// What of gpud's environment every worker gets.
const ENVIRONMENT: [&str; 2] = ["LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES"];

/// A worker process that waits for its first order.
pub struct Fresh {
    pub child: Child,
    pub channel: Channel,
}

/// Gives out worker processes.  One is always made ahead, so that a client does not wait for its start.
pub struct Spawner {
    ready: Receiver<io::Result<Fresh>>,
}

impl Spawner {
    /// Starts to make workers; `sandbox` takes network and user namespace from them, `environment` are the names of
    /// variables that they get besides [`ENVIRONMENT`].
    pub fn start(sandbox: bool, environment: Vec<String>) -> io::Result<Spawner> {
        if is_root() && std::fs::metadata("/proc/self/exe")?.mode() & 0o001 == 0 {
            let program = std::env::current_exe()?;
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("workers do not run as root and cannot start {0}: chmod o+x {0}", program.display()),
            ));
        }
        let (sender, ready) = sync_channel(0);
        // A worker gets a signal when the *thread* that made it ends, so one thread makes all and lives on.
        std::thread::Builder::new().name("spawner".to_owned()).spawn(move || make(&sender, sandbox, &environment))?;
        Ok(Spawner { ready })
    }

    /// The next worker that lives: the one made ahead may have ended since.
    pub fn take(&self) -> io::Result<Fresh> {
        loop {
            let next = self.ready.recv().unwrap_or_else(|_| Err(io::Error::other("no more workers are made")));
            let mut fresh = next?;
            match fresh.child.try_wait()? {
                None => return Ok(fresh),
                Some(status) => log!("gpud: a worker that nobody had yet has ended ({status}); another serves"),
            }
        }
    }
}

fn make(sender: &SyncSender<io::Result<Fresh>>, sandbox: bool, environment: &[String]) {
    loop {
        if sender.send(spawn(sandbox, environment)).is_err() {
            loop {
                std::thread::park();
            }
        }
    }
}

fn is_root() -> bool {
    // SAFETY: has no preconditions and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Turns a call's result into the error that it left.
fn checked(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Gives up root for good, in a process that has just been forked.
fn become_nobody() -> io::Result<()> {
    // The system calls themselves: the C library's functions also look for other threads, which a fork leaves behind.
    // SAFETY: the list of groups is empty, so that its address is not read; the others take numbers.
    unsafe {
        checked(libc::syscall(libc::SYS_setgroups, 0 as libc::c_long, std::ptr::null::<libc::gid_t>()))?;
        checked(libc::syscall(libc::SYS_setresgid, NOBODY, NOBODY, NOBODY))?;
        checked(libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY))
    }
}

fn spawn(sandbox: bool, environment: &[String]) -> io::Result<Fresh> {
    let (near, far) = Channel::pair()?;
    let descriptor = far.as_raw();
    let root = is_root();
    // This name leads to the program itself, not along its path: it may lie in a folder that only root may enter.
    let mut command = Command::new("/proc/self/exe");
    command.arg("worker").env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::inherit());
    for name in ENVIRONMENT.into_iter().chain(environment.iter().map(String::as_str)) {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    // SAFETY: between fork and exec only async-signal-safe system calls are made; `descriptor` stays open in the
    // parent until after the spawn.
    unsafe {
        command.pre_exec(move || {
            // Root may take the network away even where others may not make user namespaces.
            let apart = libc::CLONE_NEWNET | libc::CLONE_NEWIPC;
            let alone = root && sandbox && libc::unshare(apart) == 0;
            // A user namespace alone would not do: outside of it, the worker would own all that root owns.
            if root {
                become_nobody()?;
            }
            if sandbox {
                // Where user namespaces are not allowed the worker still has no privileges to gain.
                libc::unshare(if alone { libc::CLONE_NEWUSER } else { libc::CLONE_NEWUSER | apart });
            }
            checked(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
            if sandbox {
                // A kernel without filters has the worker reach what its connections' host does.
                let _ = deny_connections();
            }
            // After the change of user, which clears it.
            checked(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0).into())?;
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_CORE, &none);
            // A real driver opens a file for each of many things.
            let most = if sandbox { 256 } else { 4096 };
            let files = libc::rlimit { rlim_cur: most, rlim_max: most };
            libc::setrlimit(libc::RLIMIT_NOFILE, &files);
            let placed = if descriptor == SUPERVISOR_DESCRIPTOR {
                libc::fcntl(descriptor, libc::F_SETFD, 0)
            } else {
                libc::dup2(descriptor, SUPERVISOR_DESCRIPTOR)
            };
            if placed < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
        });
    }
    let child = command.spawn().map_err(|error| {
        let denied = matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput);
        let hint = "; gpud as root needs CAP_SETUID and CAP_SETGID, or run it as another user";
        let hint = if root && denied { hint } else { "" };
        io::Error::new(error.kind(), format!("a worker cannot be started: {error}{hint}"))
    })?;
    Ok(Fresh { child, channel: near })
}
