/** A program of a workspace that is started with a cleared environment, as by `env -i`, `sudo` and some builds. */
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runCode } from "#server/jupyter/run-code.ts";
import { waitForServer } from "#server/jupyter/wait-for-server.ts";
import { aWorkspaceSpec } from "#server/launchers/testing.ts";
import { LocalLauncher } from "./local-launcher.ts";
import { makeTestState, type TestState } from "./testing.ts";
import { workspacePaths } from "./workspace-files.ts";

let state: TestState;
let launcher: LocalLauncher;
let run: (code: string) => Promise<string>;
const spec = aWorkspaceSpec({ generation: 1 });
const signal = new AbortController().signal;
const silent = { started: () => undefined, done: () => undefined, log: () => undefined };

beforeAll(async () => {
  state = await makeTestState();
  launcher = new LocalLauncher({ stateDir: state.stateDir, wheel: undefined });
  const { endpoint } = await launcher.ensure(spec, silent, signal);
  const server = { endpoint, token: spec.serverToken };
  const stillRuns = async () => (await launcher.observe(spec.id)).state === "running";
  await waitForServer(server, { stillRuns, timeoutMs: 60_000, signal });
  run = (code) => runCode(server, code, { timeoutMs: 60_000 });
}, 240_000);

afterAll(async () => {
  await launcher.remove(spec.id);
  await state.drop();
});

const VARIABLES = `{name: value for name, value in os.environ.items() if name.startswith("SLUICE_")}`;

it("finds libcuda, the workspace's settings and the owner of the notebook's lease", async () => {
  const { home } = workspacePaths(state.stateDir, spec.id);
  const program = `import ctypes, json, os\nprint(json.dumps([ctypes.CDLL("libcuda.so.1").cuInit(0), ${VARIABLES}]))\n`;
  await writeFile(path.join(home, "cleared.py"), program);
  const cell = [
    "import json, os, sluice_gpu._client",
    "sluice_gpu._client.ensure_owner(kind='kernel')",
    `print(json.dumps(${VARIABLES}))`,
    // Between the two is a program without Sluice's variables.
    "!env -i /bin/sh -c '/opt/sluice/packages/bin/python /home/user/cleared.py; true'",
  ];
  const [own = "", child = ""] = (await run(cell.join("\n"))).split("\n");
  const variables: unknown = JSON.parse(own);
  expect(variables).toMatchObject({
    SLUICE_WORKSPACE_ID: spec.id,
    SLUICE_OWNER_SOCKET: expect.stringContaining("/owner-") as string,
  });
  expect(JSON.parse(child)).toEqual([0, variables]);
}, 60_000);

it("reaches the broker's address from nvidia-smi", async () => {
  const printed = await run("!env -i /opt/sluice/environment/bin/nvidia-smi; echo ends with $?");
  expect(printed).toContain("nvidia-smi: the broker cannot be reached");
  expect(printed).toContain("ends with 9");
}, 60_000);

it("has a driver for OpenCL's loader that names CUDA", async () => {
  const library = await run("!cat /etc/OpenCL/vendors/sluice.icd");
  const call = `import ctypes\nprint(ctypes.CDLL("${library.trim()}").clIcdGetPlatformIDsKHR(0, None, None))`;
  await writeFile(path.join(workspacePaths(state.stateDir, spec.id).home, "opencl.py"), `${call}\n`);
  const printed = await run("!env -i /opt/sluice/packages/bin/python /home/user/opencl.py");
  expect(printed).toContain("-1001");
  expect(printed).toContain("sluice: OpenCL does not reach the borrowed GPU. Use CUDA instead");
}, 60_000);
