/** Checks that are one command each: format, lint, layers, types, and generated files. */
import { run } from "#scripts/lib/processes.ts";
import type { Step } from "#scripts/test/step.ts";

type Check = { name: string; after?: string[]; command: [string, ...string[]]; cwd?: string };

const bin = (name: string) => `node_modules/.bin/${name}`;
const CARGO = { cwd: "native" };

/** Seconds. The Rust lint compiles everything. */
const LIMIT = 1800;

const TYPESCRIPT: Check[] = [
  { name: "format and fast lint", command: [bin("biome"), "ci", "."] },
  {
    name: "layers",
    command: [bin("depcruise"), "--config", ".dependency-cruiser.cjs", "app", "components", "server", "scripts"],
  },
  { name: "types", command: [bin("tsc"), "--noEmit"] },
  { name: "generated contracts are fresh", command: [process.execPath, "scripts/generate.ts", "--check"] },
];

const RUST: Check[] = [
  { ...CARGO, name: "Rust format", command: ["cargo", "fmt", "--all", "--check"] },
  {
    ...CARGO,
    name: "generated API is fresh",
    // xtask is compiled with the tests.
    after: ["Rust tests compiled"],
    command: ["cargo", "run", "--release", "--locked", "-q", "-p", "sluice-xtask", "--", "generate", "--check"],
  },
  {
    ...CARGO,
    name: "Rust examples in docs",
    after: ["Rust tests compiled"],
    command: ["cargo", "test", "--doc", "--release", "--locked", "--workspace", "-q"],
  },
];

/** The slow ones, which have room beside suites that wait. */
const SLOW: Check[] = [
  { name: "lint", command: [bin("eslint"), "."] },
  {
    ...CARGO,
    name: "Rust lint",
    after: ["Rust tests compiled"],
    command: ["cargo", "clippy", "--release", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"],
  },
];

const step = ({ name, after, command, cwd = "." }: Check): Step => ({
  ...{ name, kind: "check", cores: 1, ...(after === undefined ? {} : { after }) },
  run: async (print) => {
    const [program, ...args] = command;
    await run(program, args, { cwd, background: true, limit: LIMIT, onLine: print });
    return undefined;
  },
});

export const typescriptChecks: Step[] = TYPESCRIPT.map(step);
export const rustChecks: Step[] = RUST.map(step);
export const [lint, rustLint] = SLOW.map(step) as [Step, Step];
