//! `nvidia-smi` in the surroundings of a workspace: what scripts read, and how it ends.

mod workspace;

use std::process::Output;
use workspace::Workspace;

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

/// `nvidia-smi` without a lease.
fn bare(workspace: &Workspace, options: &[&str]) -> Output {
    workspace.sluice().arg("nvidia-smi").args(options).output().expect("runs")
}

#[test]
fn every_report_shows_the_lease() {
    let workspace = Workspace::new("smi");
    let sluice = sluice_testing::program("sluice");
    let of = |options: &str| {
        let output = workspace.run(&format!("'{}' nvidia-smi {options}", sluice.display())).wait_with_output();
        let output = output.expect("ends");
        assert_eq!(output.status.code(), Some(0), "{options}: {output:?}");
        text(&output.stdout).to_owned()
    };
    let table = of("");
    // PyTorch's collect_env looks for the driver like this.
    let driver = table.split_once("Driver Version: ").and_then(|(_, rest)| rest.split_once(' ')).expect("a driver").0;
    assert!(driver.starts_with(|c: char| c.is_ascii_digit()), "{table}");
    let memory = "0MiB /    256MiB |";
    for part in ["| NVIDIA-SMI ", "|   0  Sluice Software GPU ", memory, "Sluice: GPU 0 is 0.5 of "] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let line = of("-L");
    assert!(line.starts_with("GPU 0: Sluice Software GPU (UUID: GPU-") && line.lines().count() == 1, "{line}");
    let report = of("-q -d MEMORY");
    assert!(report.contains("        Total                             : 256 MiB\n"), "{report}");
    assert!(of("topo -m").contains("\nGPU0\t X \t"));
    assert_eq!(of("--query-gpu=memory.total,driver_version --format=csv,noheader"), format!("256 MiB, {driver}\n"));
    assert!(of("--version").contains(&format!("DRIVER version      : {driver}\n")));
}

#[test]
fn without_a_lease_it_ends_as_without_devices_and_says_what_to_do() {
    let workspace = Workspace::new("smi-none");
    for options in [&[][..], &["-L"], &["-q"], &["--query-gpu=name", "--format=csv"], &["topo", "-m"]] {
        let output = bare(&workspace, options);
        assert_eq!(output.status.code(), Some(6), "{options:?}: {output:?}");
        assert_eq!(text(&output.stdout), "No devices were found\n");
        assert!(text(&output.stderr).contains("No GPU is attached in this workspace.\nBorrow one: "), "{output:?}");
    }
    // The first GPU work attaches one: programs that look for it before shall find it.
    workspace.broker.set_first_use();
    let output = bare(&workspace, &[]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let table = text(&output.stdout);
    assert!(table.contains("|   0  Sluice Software GPU ") && table.contains("The first GPU work attaches"), "{table}");
}

#[test]
fn it_ends_as_nvidias_where_nothing_answers_or_the_words_are_wrong() {
    let workspace = Workspace::new("smi-refused");
    let output = bare(&workspace, &["--mood"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stdout).starts_with("Invalid combination of input arguments."), "{output:?}");
    assert!(text(&output.stderr).contains("--mood"), "{output:?}");
    assert_eq!(bare(&workspace, &["-pm", "1"]).status.code(), Some(4));
    assert_eq!(bare(&workspace, &["-q", "-d", "MOOD"]).status.code(), Some(2));
    assert_eq!(bare(&workspace, &["-h"]).status.code(), Some(0));
    workspace.broker.set_first_use();
    assert_eq!(bare(&workspace, &["-i", "7"]).status.code(), Some(6));
    assert_eq!(bare(&workspace, &["--query-gpu=mood", "--format=csv"]).status.code(), Some(2));
    workspace.broker.set_away(true);
    let output = bare(&workspace, &[]);
    assert_eq!(output.status.code(), Some(9), "{output:?}");
    assert!(text(&output.stderr).starts_with("nvidia-smi: "), "{output:?}");
}
