//! `nvidia-smi topo -m`: how the GPUs of a lease reach each other.

use super::gpu::Gpu;

/// The matrix, tab-separated as NVIDIA's. GPUs of one server are joined by its bus at least; between servers copies pass
/// through the workspace. The lease does not tell processors and memory nodes of the server.
pub fn matrix(gpus: &[Gpu]) -> String {
    let names: Vec<String> = gpus.iter().map(|gpu| format!("GPU{}", gpu.index)).collect();
    let mut lines = vec![format!("\t{}\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID", names.join("\t"))];
    for (gpu, name) in gpus.iter().zip(&names) {
        let way = |other: &Gpu| match other {
            other if other.index == gpu.index => " X ",
            other if other.server == gpu.server => "SYS",
            _ => "N/A",
        };
        let ways: Vec<&str> = gpus.iter().map(way).collect();
        lines.push(format!("{name}\t{}\tN/A\tN/A\tN/A", ways.join("\t")));
    }
    lines.extend(
        ["", "Legend:", "", "  X    = Self", "  SYS  = Same server", "  N/A  = Not known, or another server"]
            .map(str::to_owned),
    );
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_of_one_server_are_joined() {
        let gpu = |index, server: &str| Gpu { index, server: server.to_owned(), ..Gpu::default() };
        let text = matrix(&[gpu(0, "a"), gpu(1, "a"), gpu(2, "b")]);
        assert!(
            text.starts_with(
                "\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n\
                 GPU0\t X \tSYS\tN/A\tN/A\tN/A\tN/A\nGPU1\tSYS\t X \tN/A\tN/A\tN/A\tN/A\nGPU2\tN/A\tN/A\t X \t"
            ),
            "{text}"
        );
    }
}
