//! A GPU that the first use attaches by itself, and the wait for it: in a Python program, because its interrupts are
//! what stops the wait.

use sluice_conformance::broker::Broker;
use sluice_conformance::gpud::{Gpud, link_libraries};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Allocates when it is told to, and says what became of it.
const PROGRAM: &str = r#"
import ctypes, signal, sys

# A shell that runs tests behind others has them ignore interrupts; a wait that nothing ends is to end.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.alarm(60)
cuda = ctypes.CDLL("libcuda.so.1")
context, address = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert cuda.cuCtxSetCurrent(context) == 0
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

impl Program {
    fn start(broker: &Broker, libraries: &Path) -> Self {
        let mut child = Command::new("python3")
            .args(["-c", PROGRAM])
            .env("LD_LIBRARY_PATH", libraries)
            .env("SLUICE_BROKER_URL", &broker.url)
            .env("SLUICE_CREDENTIAL_FILE", &broker.credential_file)
            .env_remove("SLUICE_OWNER_SOCKET")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
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
    let gpud = Arc::new(Gpud::start("soft", &[]).expect("gpud"));
    let broker = Broker::start(gpud, 256 << 20).expect("broker");
    broker.set_first_use();
    broker.set_full(true);
    let libraries = std::env::temp_dir().join(format!("sluice-first-use-{}", std::process::id()));
    std::fs::create_dir_all(&libraries).expect("a folder");
    link_libraries(&libraries).expect("libraries are built");
    let mut program = Program::start(&broker, &libraries);

    program.allocate();
    until("the request waits", || broker.waiting() == 1);
    // Somewhere between two questions.
    std::thread::sleep(Duration::from_millis(300));
    let began = Instant::now();
    program.interrupt();
    assert_eq!(program.says(), "interrupted");
    assert!(began.elapsed() < Duration::from_secs(3), "the wait went on for {:?}", began.elapsed());
    assert_eq!(broker.waiting(), 0, "the request is still in the queue");

    // Python has its own handler again, and the next cell waits anew.
    std::thread::sleep(Duration::from_millis(1100));
    program.allocate();
    until("the next request waits", || broker.waiting() == 1);
    program.interrupt();
    assert_eq!(program.says(), "interrupted");
    std::thread::sleep(Duration::from_millis(1100));
    program.allocate();
    until("the last request waits", || broker.waiting() == 1);
    broker.set_full(false);
    assert_eq!(program.says(), "answered 0");

    drop(program.child.stdin.take());
    let mut said = String::new();
    program.child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
    assert!(program.child.wait().expect("ended").success(), "{said}");
    assert!(said.contains("sluice: The wait for a GPU was stopped, and its request has left the queue."), "{said}");
    assert!(said.contains("Attached a GPU by itself"), "{said}");
    let _ = std::fs::remove_dir_all(&libraries);
}
