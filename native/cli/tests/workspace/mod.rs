//! A workspace with a broker and a gpud of its own.
#![allow(dead_code, reason = "each test program uses a part")]

use sluice_conformance::broker::Broker;
use sluice_conformance::gpud::Gpud;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

/// A workspace with a broker and a gpud of its own.
pub struct Workspace {
    pub broker: Broker,
    pub runtime: PathBuf,
}

impl Workspace {
    pub fn new(name: &str) -> Self {
        let gpud = Arc::new(Gpud::start("soft", &[]).expect("gpud"));
        let broker = Broker::start(gpud, 256 << 20).expect("broker");
        let runtime = std::env::temp_dir().join(format!("sluice-run-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&runtime).expect("a folder");
        Self { broker, runtime }
    }

    pub fn run(&self, script: &str) -> Child {
        self.start(&["sh", "-c", script], &[])
    }

    pub fn start(&self, words: &[&str], environment: &[(&str, &Path)]) -> Child {
        self.start_waiting("0", words, environment)
    }

    pub fn start_waiting(&self, wait: &str, words: &[&str], environment: &[(&str, &Path)]) -> Child {
        self.start_asking(&["--gpu", "0.5", "--wait", wait], words, environment)
    }

    /// The command, in the workspace's surroundings.
    pub fn sluice(&self) -> Command {
        let mut command = Command::new(sluice_testing::program("sluice"));
        command.env("SLUICE_BROKER_URL", &self.broker.url).env("SLUICE_CREDENTIAL_FILE", &self.broker.credential_file);
        command.env("SLUICE_RUNTIME_DIR", &self.runtime).env_remove("SLUICE_OWNER_SOCKET");
        command
    }

    pub fn start_asking(&self, flags: &[&str], words: &[&str], environment: &[(&str, &Path)]) -> Child {
        let mut command = self.sluice();
        command.arg("run").args(flags).arg("--").args(words).envs(environment.iter().copied());
        // A group of its own, as a shell makes it: what an orphaned group is told about stopping is ignored.
        command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs")
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.runtime);
    }
}
