//! `docs/api-coverage.md`.

use crate::{MARK, runtime};
use sluice_api::driver::functions;
use sluice_api::libraries::{Library, Way as LibraryWay, libraries};
use sluice_api::{OPERATIONS, Travel, Way};
use std::fmt::Write;

/// The page.
pub fn page() -> String {
    let mut out = format!("<!-- {MARK} -->\n# API coverage\n\n## CUDA Driver API (`libcuda.so.1`)\n\n");
    let refused = functions().filter(|f| matches!(f.way, Way::Refused(_))).count();
    let _ = writeln!(
        out,
        "Every function of the CUDA 12 and 13 headers exists: {} are served, {refused} answer \
         CUDA_ERROR_NOT_SUPPORTED with a reason. `_ptsz` and `_ptds` variants take stream 0 for the calling thread's \
         own default stream.\n\nlocal: answered in the client. posted: sent and not waited for. call: waits for the \
         GPU server.\n\n| function | symbol | since CUDA | travels |\n| --- | --- | ---: | --- |",
        functions().count() - refused
    );
    for function in functions() {
        let way = match function.way {
            Way::Local => "local".to_owned(),
            Way::Posted => "posted".to_owned(),
            Way::Call => "call".to_owned(),
            Way::Refused(reason) => format!("refused: {reason}"),
        };
        let since = format!("{}.{}", function.since / 1000, function.since % 1000 / 10);
        let per_thread = function.per_thread.map_or(String::new(), |suffix| format!(", _{suffix}"));
        let _ = writeln!(out, "| {} | {}{per_thread} | {since} | {way} |", function.name(), function.symbol);
    }
    out.push_str(&runtime::coverage());
    let served = sluice_api::nvml::SERVED;
    let _ = writeln!(
        out,
        "\n## NVML (`libnvidia-ml.so.1`)\n\nAll {} public functions exist. {} are served, in the client, and show the \
         lease and not the card; the others answer NVML_ERROR_NOT_SUPPORTED, because they ask about the card itself or \
         would change it.\n",
        sluice_api::nvml::names().count(),
        served.len()
    );
    for name in served {
        let _ = writeln!(out, "- {name}");
    }
    for library in libraries() {
        library_page(&mut out, library.get());
    }
    out.push_str("\n## Operations of the wire protocol\n\n| opcode | operation | travels | what it does |\n");
    out.push_str("| ---: | --- | --- | --- |\n");
    for operation in OPERATIONS {
        let travel = if operation.travel == Travel::Call { "call" } else { "posted" };
        let _ = writeln!(out, "| {} | {} | {travel} | {} |", operation.opcode, operation.name, operation.doc);
    }
    out
}

/// What a library's functions do here, families of one way and reason together.
fn library_page(out: &mut String, library: &Library) {
    let names: Vec<String> = library.source.shims.iter().map(|shim| format!("`{}`", shim.soname)).collect();
    let refused = library.functions.iter().filter(|f| f.way == LibraryWay::Refused).count();
    let served = library.functions.len() - refused;
    let _ = writeln!(
        out,
        "\n## {} ({})\n\n{served} functions are served, {refused} answer \"not supported\" in the library's own terms. \
         On a server without the library every call is refused by name.\n\n| function | travels |\n| --- | --- |",
        library.source.title,
        names.join(", ")
    );
    for function in &library.functions {
        let way = match function.way {
            LibraryWay::Run if !function.has_outputs() && !function.reads_samples => {
                "posted; waits with new choices and for host results".into()
            }
            LibraryWay::Set if library.source.in_place => "call".into(),
            LibraryWay::Set | LibraryWay::End if !function.has_outputs() => "posted".into(),
            LibraryWay::Ask => "call, answers are kept".into(),
            LibraryWay::Describe | LibraryWay::Change | LibraryWay::Drop => {
                "with its first use, equal ones once".into()
            }
            LibraryWay::Join => "call, to all devices of a group at the same time".into(),
            LibraryWay::Draft | LibraryWay::Write => "with its first use".into(),
            LibraryWay::Finish if !function.note.is_empty() => "call; for what one call uses, with that call".into(),
            LibraryWay::Get | LibraryWay::Local => "local".into(),
            LibraryWay::Refused => format!("refused: {}", function.note),
            _ => "call".to_owned(),
        };
        let _ = writeln!(out, "| {} | {way} |", function.symbol);
    }
}
