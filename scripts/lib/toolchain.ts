/** What must be on the machine already, each with the command that installs it. */
import { spawnSync } from "node:child_process";

type Tool = { name: string; probe: [string, ...string[]]; accepts: (output: string) => boolean; install: string };

const atLeast = (pattern: RegExp, major: number, minor: number) => (output: string) => {
  const found = pattern.exec(output);
  if (found === null) return false;
  const [foundMajor, foundMinor] = [Number(found[1]), Number(found[2])];
  return foundMajor > major || (foundMajor === major && foundMinor >= minor);
};

const TOOLS: Record<"python" | "rust" | "linker", Tool> = {
  python: {
    name: "Python 3.10 or newer with pip",
    probe: ["python3", "-c", "import sys, pip, venv; print('Python %d.%d' % sys.version_info[:2])"],
    accepts: atLeast(/Python (\d+)\.(\d+)/, 3, 10),
    install: "sudo apt-get install -y python3 python3-venv python3-pip",
  },
  rust: {
    name: "Rust 1.88 or newer",
    probe: ["cargo", "--version"],
    accepts: atLeast(/cargo (\d+)\.(\d+)/, 1, 88),
    install: "curl --proto '=https' -sSf https://sh.rustup.rs | sh -s -- -y",
  },
  linker: {
    name: "a C compiler and linker",
    probe: ["cc", "--version"],
    accepts: (output) => output !== "",
    install: "sudo apt-get install -y build-essential",
  },
};

/** A sentence for each missing tool. */
export function missingTools(names: readonly (keyof typeof TOOLS)[]): string[] {
  return names.flatMap((key) => {
    const tool = TOOLS[key];
    const [command, ...args] = tool.probe;
    const result = spawnSync(command, args, { encoding: "utf8" });
    const there = result.status === 0 && tool.accepts(result.stdout);
    return there ? [] : [`${tool.name} is missing. Install it with:  ${tool.install}`];
  });
}
