//! A GPU that the first use attaches by itself, and the wait for it: in a Python program, because its interrupts are
//! what stops the wait.

use sluice_conformance::broker::Broker;
use sluice_conformance::gpud::{Gpud, link_libraries};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Allocates when it is told to, and says what became of it. Told `own`, it owns the lease and says by which socket its
/// children find it.
const PROGRAM: &str = r#"
import ctypes, json, os, signal, sys

# A shell that runs tests behind others has them ignore interrupts; a wait that nothing ends is to end.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.alarm(60)
cuda = ctypes.CDLL("libcuda.so.1")
context, address = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
if sys.argv[1:] == ["own"]:
    client = ctypes.CDLL("libsluice_client.so")
    client.sluice_request.restype = ctypes.c_void_p
    owner = {"kind": "process", "pid": os.getpid(), "startTime": 1}
    answer = client.sluice_request(json.dumps({"op": "init", "owner": owner}).encode())
    print(json.loads(ctypes.string_at(answer))["socket"], flush=True)
for line in sys.stdin:
    try:
        code = cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4096))
        print("answered", code, flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"#;

struct Program {
    child: Child,
    lines: BufReader<ChildStdout>,
}

/// A full pool, whose workspaces attach at the first use, and its libraries' folder.
struct Workspace {
    broker: Broker,
    libraries: PathBuf,
}

impl Workspace {
    fn start() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let gpud = Arc::new(Gpud::start("soft", &[]).expect("gpud"));
        let broker = Broker::start(gpud, 256 << 20).expect("broker");
        broker.set_first_use();
        broker.set_full(true);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let libraries = std::env::temp_dir().join(format!("sluice-first-use-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&libraries).expect("a folder");
        link_libraries(&libraries).expect("libraries are built");
        Self { broker, libraries }
    }

    /// The one request that waits, when there is another than `before`.
    fn waits(&self, what: &str, before: &[String]) -> Vec<String> {
        until(what, || self.broker.waiting().len() == 1 && self.broker.waiting() != before);
        self.broker.waiting()
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.libraries);
    }
}

impl Program {
    fn start(workspace: &Workspace, words: &[&str], owner: Option<&str>) -> Self {
        let mut command = Command::new("python3");
        command
            .args(["-c", PROGRAM])
            .args(words)
            .env("LD_LIBRARY_PATH", &workspace.libraries)
            .env("SLUICE_RUNTIME_DIR", &workspace.libraries)
            .env("SLUICE_BROKER_URL", &workspace.broker.url)
            .env("SLUICE_CREDENTIAL_FILE", &workspace.broker.credential_file)
            .env_remove("SLUICE_OWNER_SOCKET")
            .envs(owner.map(|socket| ("SLUICE_OWNER_SOCKET", socket)));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
        let lines = BufReader::new(child.stdout.take().expect("piped"));
        Self { child, lines }
    }

    fn allocate(&mut self) {
        writeln!(self.child.stdin.as_mut().expect("piped")).expect("told");
    }

    fn says(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line");
        line.trim().to_owned()
    }

    fn interrupt(&self) {
        // SAFETY: a child of this process that nobody has waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, libc::SIGINT) }, 0);
    }

    /// Ends it; what it said on stderr.
    fn end(mut self) -> String {
        drop(self.child.stdin.take());
        let mut said = String::new();
        self.child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
        assert!(self.child.wait().expect("ended").success(), "{said}");
        said
    }
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < end, "not within 10 s: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn an_interrupt_ends_the_wait_for_a_gpu_and_its_request() {
    let workspace = Workspace::start();
    let mut program = Program::start(&workspace, &[], None);

    program.allocate();
    workspace.waits("the request", &[]);
    // Somewhere between two questions.
    std::thread::sleep(Duration::from_millis(300));
    let began = Instant::now();
    program.interrupt();
    assert_eq!(program.says(), "interrupted");
    assert!(began.elapsed() < Duration::from_secs(3), "the wait went on for {:?}", began.elapsed());
    assert_eq!(workspace.broker.waiting(), [""; 0], "the request is still in the queue");

    // Python has its own handler again, and the next cell waits anew.
    std::thread::sleep(Duration::from_millis(1100));
    program.allocate();
    workspace.waits("the next request", &[]);
    program.interrupt();
    assert_eq!(program.says(), "interrupted");
    std::thread::sleep(Duration::from_millis(1100));
    program.allocate();
    workspace.waits("the last request", &[]);
    workspace.broker.set_full(false);
    assert_eq!(program.says(), "answered 0");

    let said = program.end();
    assert!(said.contains("sluice: The wait for a GPU was stopped, and its request has left the queue."), "{said}");
    assert!(said.contains("Attached a GPU by itself"), "{said}");
}

#[test]
fn an_owner_stops_to_wait_for_a_child_that_was_interrupted_and_goes_on_for_the_next() {
    let workspace = Workspace::start();
    let mut owner = Program::start(&workspace, &["own"], None);
    let socket = owner.says();
    let [mut child, mut sibling] = [(); 2].map(|()| Program::start(&workspace, &[], Some(&socket)));

    child.allocate();
    workspace.waits("the child's request", &[]);
    child.interrupt();
    assert_eq!(child.says(), "interrupted");
    until("the child's request has left the queue", || workspace.broker.waiting().is_empty());

    // A sibling waits behind it.
    child.allocate();
    let before = workspace.waits("the child's next request", &[]);
    sibling.allocate();
    std::thread::sleep(Duration::from_millis(300));
    child.interrupt();
    assert_eq!(child.says(), "interrupted");
    workspace.waits("the sibling's request", &before);
    workspace.broker.set_full(false);
    assert_eq!(sibling.says(), "answered 0");
    for program in [sibling, child, owner] {
        program.end();
    }
}
