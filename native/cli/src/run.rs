//! `sluice run`: borrow, run the program, give back.

use crate::text::{attached, queued, refused, string};
use crate::{ask, problem};
use clap::ArgMatches;
use serde_json::{Value, json};
use sluice_client::static_runtime;
use std::ffi::{OsStr, OsString};
use std::io::{IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// As `timeout` and `env` use it: the program could not be started for want of what it needs.
pub const NOT_STARTED: u8 = 125;
/// As shells use them.
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;
/// Signals that the program is meant to get.
const SIGNALS: [i32; 9] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGTSTP,
    libc::SIGCONT,
    libc::SIGWINCH,
];
/// Those of them that end the wait in the queue.
const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// Runs a program on a borrowed GPU; its exit code is ours.
pub fn run(options: &ArgMatches) -> ExitCode {
    let words: Vec<OsString> = options.get_many::<OsString>("command").unwrap_or_default().cloned().collect();
    let Some((program, rest)) = words.split_first() else { return ExitCode::from(NOT_STARTED) };
    let file = match file_of(Path::new(program)) {
        Ok(file) => file,
        Err((code, problem)) => {
            // Said before anything is borrowed: nobody waits in a queue for a slip.
            eprintln!("sluice: {}: {problem}; no GPU was borrowed", program.to_string_lossy());
            return ExitCode::from(code);
        }
    };
    let signals = Signals::take();
    let label: String = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let label: String = label.chars().take(200).collect();
    let owner = json!({"kind": "process", "pid": std::process::id(), "startTime": start_time(), "label": label});
    let served = ask(&json!({"op": "init", "owner": owner}));
    if let Some(problem) = problem(&served) {
        return fail(&problem);
    }
    if let Err(code) = borrow(&Request::of(options), &signals) {
        return code;
    }
    let mut command = Command::new(program);
    command.args(rest).env("SLUICE_OWNER_SOCKET", string(&served, "/socket"));
    point_at_shims(&mut command);
    if std::fs::read(&file).is_ok_and(|bytes| static_runtime::is_inside(&bytes)) {
        // It cannot use the GPU, and runs all the same.
        eprintln!("sluice: {}", static_runtime::advice(&file));
        command.env(static_runtime::TOLD, file);
    }
    // SAFETY: only an async-signal-safe call between fork and exec.
    unsafe {
        command.pre_exec(|| {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
            Ok(())
        });
    }
    let outcome = match command.spawn() {
        Ok(child) => Ok(signals.pass_on(child)),
        Err(error) => Err(format!("{}: {error}", program.to_string_lossy())),
    };
    let answer = ask(&json!({"op": "detach"}));
    if let Some(problem) = problem(&answer)
        && outcome.is_ok()
    {
        eprintln!("sluice: the GPU could not be given back in order: {problem}");
    }
    let _ = std::fs::remove_file(string(&served, "/socket"));
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(problem) => {
            eprintln!("sluice: {problem}");
            ExitCode::from(NOT_FOUND)
        }
    }
}

fn fail(problem: &str) -> ExitCode {
    eprintln!("sluice: {problem}");
    ExitCode::from(NOT_STARTED)
}

/// What is asked for, under a key of its own.
#[derive(Clone)]
pub struct Request {
    pub id: String,
    amount: String,
    /// Beside an amount of compute.
    memory: Option<String>,
    wait: u64,
    guaranteed: bool,
    gpu_type: Option<String>,
    priority: Option<String>,
    seconds: Option<u64>,
}

impl Request {
    /// As the flags say.
    pub fn of(options: &ArgMatches) -> Request {
        let text = |name: &str| options.try_get_one::<String>(name).ok().flatten().cloned();
        let number = |name: &str| options.try_get_one::<u64>(name).ok().flatten().copied();
        let guaranteed = options.try_get_one::<bool>("guaranteed").ok().flatten().copied();
        let (gpu, memory) = (text("gpu").filter(|amount| !amount.is_empty()), text("mem"));
        Request {
            id: uuid::Uuid::new_v4().to_string(),
            memory: gpu.as_ref().and_then(|_| memory.clone()),
            amount: gpu.or(memory).unwrap_or_default(),
            wait: number("wait").unwrap_or(120),
            guaranteed: guaranteed.unwrap_or(false),
            gpu_type: text("type"),
            priority: text("priority"),
            seconds: number("for"),
        }
    }

    /// The same under a key that was used before: whatever has become of that one.
    pub fn under(&self, id: String) -> Request {
        Request { id, ..self.clone() }
    }

    /// The fields that the broker and the client library know.
    pub fn body(&self) -> Value {
        let mut body = json!({
            "requestId": self.id, "amount": self.amount, "waitSeconds": self.wait, "guaranteed": self.guaranteed,
        });
        let optional = [("memory", &self.memory), ("gpuType", &self.gpu_type), ("priority", &self.priority)];
        for (field, value) in optional {
            if let Some(text) = value {
                body[field] = json!(text);
            }
        }
        if let Some(seconds) = self.seconds {
            body["forSeconds"] = json!(seconds);
        }
        body
    }
}

/// Attaches, waiting in the queue with a live line.
pub fn borrow(request: &Request, signals: &Signals) -> Result<(), ExitCode> {
    let Request { id, wait, .. } = request;
    let mut attach = request.body();
    attach["op"] = json!("attach");
    let began = Instant::now();
    let live = std::io::stderr().is_terminal();
    let mut answer = ask(&attach);
    let mut told = false;
    loop {
        if let Some(problem) = problem(&answer) {
            return Err(fail(&problem));
        }
        match string(&answer, "/state") {
            "granted" => {
                eprintln!("{}{}", if live && told { "\r\x1b[K" } else { "" }, attached(&answer));
                return Ok(());
            }
            "queued" => {
                let line = queued(&answer, began.elapsed().as_secs(), *wait);
                if live {
                    eprint!("\r\x1b[K{line}");
                    let _ = std::io::stderr().flush();
                } else if !told {
                    eprintln!("{line}");
                }
                told = true;
            }
            _ => {
                if live && told {
                    eprintln!();
                }
                return Err(fail(&refused(&answer)));
            }
        }
        if let Some(signal) = signals.pending() {
            ask(&json!({"op": "cancel", "requestId": id}));
            eprintln!("{}sluice: stopped; left the queue", if live { "\n" } else { "" });
            return Err(ExitCode::from(128u8.wrapping_add(signal as u8)));
        }
        let next = ask(&json!({"op": "poll", "requestId": id, "waitSeconds": 1}));
        if string(&next, "/error/code") == "unavailable" && began.elapsed().as_secs() <= *wait {
            // The place in the queue is kept while the broker or its database is away.
            std::thread::sleep(Duration::from_secs(1));
        } else {
            answer = next;
        }
    }
}

/// The libraries that are preloaded: those that programs look for by themselves, and the runtime, because programs that
/// carry a path of their own (DT_RPATH) would find NVIDIA's first.
const PRELOADED: [&str; 4] = ["libcuda.so.1", "libnvidia-ml.so.1", "libcudart.so.13", "libcudart.so.12"];

/// Lets the program find the CUDA shims: by the library path, and preloaded for programs that carry their own path.
fn point_at_shims(command: &mut Command) {
    let Some(folder) = shim_folder() else { return };
    let joined = |name: &str, first: &Path, separator: &str| {
        let mut value = first.as_os_str().to_owned();
        if let Some(old) = std::env::var_os(name).filter(|old| !old.is_empty()) {
            value.push(separator);
            value.push(old);
        }
        value
    };
    let there = PRELOADED.iter().map(|name| folder.join(name)).filter(|path| path.is_file());
    let preloaded = there.map(PathBuf::into_os_string).collect::<Vec<_>>().join(OsStr::new(" "));
    command.env("LD_PRELOAD", joined("LD_PRELOAD", Path::new(&preloaded), " "));
    command.env("LD_LIBRARY_PATH", joined("LD_LIBRARY_PATH", &folder, ":"));
}

/// The program's file, found as it is when it starts: what its path names, else the first in `PATH` that may run.
fn file_of(program: &Path) -> Result<PathBuf, (u8, &'static str)> {
    let places = std::env::var_os("PATH").unwrap_or_default();
    let files: Vec<PathBuf> = if program.components().count() > 1 {
        vec![program.to_owned()]
    } else {
        std::env::split_paths(&places).map(|folder| folder.join(program)).collect()
    };
    let may_run = |file: &&PathBuf| file.metadata().is_ok_and(|it| it.is_file() && it.mode() & 0o111 != 0);
    match files.iter().find(may_run) {
        Some(file) => Ok(file.clone()),
        None if files.iter().any(|file| file.is_file()) => {
            Err((NOT_EXECUTABLE, "nobody may execute it (see chmod +x)"))
        }
        None => Err((NOT_FOUND, "there is no such program")),
    }
}

/// `SLUICE_LIBRARY_DIR`, else the Python package beside which this command was installed, else this command's folder.
fn shim_folder() -> Option<PathBuf> {
    let has_shim = |folder: &PathBuf| folder.join("libcuda.so.1").is_file();
    if let Some(folder) = std::env::var_os("SLUICE_LIBRARY_DIR").map(PathBuf::from).filter(has_shim) {
        return Some(folder);
    }
    let program = std::env::current_exe().ok()?;
    let bin = program.parent()?;
    let pythons = std::fs::read_dir(bin.parent()?.join("lib")).into_iter().flatten().flatten();
    let packages = pythons.map(|python| python.path().join("site-packages/sluice_gpu/lib"));
    packages.chain([bin.to_owned()]).find(has_shim)
}

/// Field 22 of /proc/self/stat: with the process id it names this process for good.
pub fn start_time() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    fields.split_whitespace().nth(19).and_then(|field| field.parse().ok()).unwrap_or_default()
}

/// Signals to this process, taken by one thread and passed on to the program.
#[derive(Default)]
pub struct Signals {
    child: Arc<AtomicI32>,
    last: Arc<AtomicI32>,
    child_gone: Arc<AtomicBool>,
    /// What came before the program's number was known: it is passed on then.
    early: Arc<Mutex<Vec<i32>>>,
}

impl Signals {
    /// Blocks the signals in every thread made after this, and takes them.
    pub fn take() -> Signals {
        // SAFETY: the set is initialised before use; the signal numbers are valid.
        let set = unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            SIGNALS.iter().for_each(|signal| {
                libc::sigaddset(&mut set, *signal);
            });
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            set
        };
        let signals = Signals::default();
        let (child, last, gone) =
            (Arc::clone(&signals.child), Arc::clone(&signals.last), Arc::clone(&signals.child_gone));
        let early = Arc::clone(&signals.early);
        let taken = std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            loop {
                // SAFETY: `info` is plain data that sigwaitinfo fills in.
                let (signal, code) = unsafe {
                    let mut info: libc::siginfo_t = std::mem::zeroed();
                    (libc::sigwaitinfo(&set, &mut info), info.si_code)
                };
                if signal <= 0 {
                    continue;
                }
                if ENDING.contains(&signal) {
                    last.store(signal, Ordering::Release);
                }
                let mut early = early.lock().unwrap_or_else(PoisonError::into_inner);
                let pid = child.load(Ordering::Acquire);
                // What the terminal sends goes to the whole foreground group, the program has it already.
                if pid > 0 && !gone.load(Ordering::Acquire) && code <= 0 {
                    // SAFETY: the child is not reaped while `gone` is false.
                    unsafe { libc::kill(pid, signal) };
                } else if pid == 0 && code <= 0 {
                    early.push(signal);
                }
                drop(early);
                if signal == libc::SIGTSTP {
                    // The shell takes the terminal back when this process stops too; SIGCONT to the group ends it.
                    // SAFETY: takes no pointers.
                    unsafe { libc::raise(libc::SIGSTOP) };
                }
            }
        });
        if let Err(error) = taken {
            eprintln!("sluice: signals are not passed on: {error}");
        }
        signals
    }

    /// The last signal since the start.
    pub fn pending(&self) -> Option<i32> {
        Some(self.last.load(Ordering::Acquire)).filter(|signal| *signal > 0)
    }

    /// Waits for the program; its exit code, or 128 and the signal that ended it.
    fn pass_on(&self, mut child: Child) -> u8 {
        {
            let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
            self.child.store(child.id() as i32, Ordering::Release);
            for signal in early.drain(..) {
                // SAFETY: takes no pointers; the child is not reaped yet.
                unsafe { libc::kill(child.id() as i32, signal) };
            }
        }
        let status = child.wait();
        self.child_gone.store(true, Ordering::Release);
        match status {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => code as u8,
                (None, Some(signal)) => {
                    if signal != libc::SIGINT {
                        let signal = status.to_string().replacen("signal: ", "signal ", 1);
                        eprintln!("sluice: the program was ended by {signal}");
                    }
                    128u8.wrapping_add(signal as u8)
                }
                _ => NOT_STARTED,
            },
            Err(_) => NOT_STARTED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Request;
    use serde_json::json;

    #[test]
    fn memory_is_the_amount_or_beside_it() {
        let asked = |flags: &[&str]| {
            let words = ["sluice", "run"].iter().chain(flags).chain(&["--", "program"]);
            let matches = crate::args::command().try_get_matches_from(words).expect("read");
            let body = Request::of(matches.subcommand_matches("run").expect("run")).body();
            ["amount", "memory", "gpuType"].map(|field| body[field].clone())
        };
        let nothing = serde_json::Value::Null;
        assert_eq!(asked(&[]), [json!(""), nothing.clone(), nothing.clone()]);
        assert_eq!(asked(&["--mem", "4G"]), [json!("4G"), nothing.clone(), nothing.clone()]);
        assert_eq!(asked(&["--gpu", "0.5"]), [json!("0.5"), nothing.clone(), nothing]);
        let all = ["--gpu", "0.5", "--mem", "4G", "--type", "soft"];
        assert_eq!(asked(&all), [json!("0.5"), json!("4G"), json!("soft")]);
    }
}
