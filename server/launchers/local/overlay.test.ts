/** A real workspace: its own packages lie over the shared environment, and it is found again. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile, mkdir, readdir, readFile, stat, utimes, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Kernel, KernelManager, ServerConnection } from "@jupyterlab/services";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { lastActivity } from "#server/jupyter/activity.ts";
import { baseUrlOf, fetchOf } from "#server/jupyter/endpoint.ts";
import { runCode } from "#server/jupyter/run-code.ts";
import { type JupyterServer, serverSettings } from "#server/jupyter/server-settings.ts";
import { waitForServer } from "#server/jupyter/wait-for-server.ts";
import type { RunningWorkspace, WorkspaceSpec } from "#server/launchers/launcher.ts";
import { aWorkspaceSpec } from "#server/launchers/testing.ts";
import { prune } from "./environment.ts";
import { LocalLauncher } from "./local-launcher.ts";
import { isAlive, type ProcessStart } from "./processes.ts";
import { makeTestState, type TestState } from "./testing.ts";
import { findUv } from "./uv.ts";
import { workspacePaths } from "./workspace-files.ts";

type Started = RunningWorkspace & { server: JupyterServer; run: (code: string) => Promise<string> };

let state: TestState;
let launcher: LocalLauncher;
let spec: WorkspaceSpec;
let current: Started | undefined;

const signal = new AbortController().signal;
const silent = { started: () => undefined, done: () => undefined, log: () => undefined };
const paths = () => workspacePaths(state.stateDir, spec.id);

beforeAll(async () => {
  state = await makeTestState();
  launcher = new LocalLauncher({ stateDir: state.stateDir, wheel: undefined });
  spec = aWorkspaceSpec({ generation: 0 });
}, 240_000);

afterAll(async () => {
  await launcher.remove(spec.id);
  await state.drop();
});

/** Starts the next generation and settles when it answers. */
async function start(): Promise<Started> {
  spec = { ...spec, generation: spec.generation + 1 };
  const started = await launcher.ensure(spec, silent, signal);
  const server = { endpoint: started.endpoint, token: spec.serverToken };
  const stillRuns = async () => (await launcher.observe(spec.id)).state === "running";
  await waitForServer(server, { stillRuns, timeoutMs: 60_000, signal });
  current = { ...started, server, run: (code: string) => runCode(server, code, { timeoutMs: 60_000 }) };
  return current;
}

/** The workspace as the test before left it; started if it does not run. */
async function ensureRunning(): Promise<Started> {
  if (current !== undefined && (await launcher.observe(spec.id)).state === "running") return current;
  return await start();
}

/** Lays a wheel of one module into the home, as somebody who uploads a package. */
async function layWheel(name: string, version: string, command = `${name}-command`): Promise<string> {
  const info = `${name}-${version}.dist-info`;
  const files = {
    [`${name}.py`]: `__version__ = "${version}"\ndef main():\n    print("${name} ${version} runs")\n`,
    [`${info}/METADATA`]: `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`,
    [`${info}/WHEEL`]: "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    [`${info}/entry_points.txt`]: `[console_scripts]\n${command} = ${name}:main\n`,
    [`${info}/RECORD`]: "",
  };
  const wheel = `${name}-${version}-py3-none-any.whl`;
  const program =
    "import json,sys,zipfile\nz=zipfile.ZipFile(sys.argv[1],'w')\n[z.writestr(*f) for f in json.loads(sys.argv[2]).items()]\nz.close()";
  await mkdir(paths().home, { recursive: true });
  execFileSync("python3", ["-c", program, path.join(paths().home, wheel), JSON.stringify(files)]);
  return wheel;
}

describe("a workspace's own packages", () => {
  it("are installed by %pip, work with their commands, and are there at the next start", async () => {
    const first = await start();
    const wheel = await layWheel("sluiceprobe", "1.0");
    expect(await first.run(`%pip install --no-index ./${wheel}`)).toContain("Successfully installed sluiceprobe-1.0");
    expect(await first.run("import sluiceprobe; print(sluiceprobe.__version__)\n!sluiceprobe-command")).toBe(
      "1.0\nsluiceprobe 1.0 runs",
    );
    await writeFile(path.join(paths().home, "kept.txt"), "kept");
    await launcher.stop(spec.id);

    const second = await start();
    expect(await second.run("import sluiceprobe; print(sluiceprobe.__version__, open('kept.txt').read())")).toBe(
      "1.0 kept",
    );
    const newer = await layWheel("sluiceprobe", "2.0");
    expect(await second.run(`%pip install --no-index --upgrade ./${newer}`)).toContain(
      "Successfully uninstalled sluiceprobe-1.0",
    );
    expect(await second.run("!sluiceprobe-command")).toBe("sluiceprobe 2.0 runs");
    expect(await second.run("%pip uninstall -y sluiceprobe")).toContain("Successfully uninstalled sluiceprobe-2.0");
    expect(await second.run("import sluiceprobe")).toContain("ModuleNotFoundError");
  }, 120_000);

  it("come before the shared environment's, which comes back when they go and can never be changed", async () => {
    const { run } = await ensureRunning();
    const shared = await run("import six; print(six.__version__)");
    const wheel = await layWheel("six", "99.0");
    expect(await run(`%pip install --no-index --upgrade ./${wheel}`)).toContain("Successfully installed six-99.0");
    expect(await run("import six; print(six.__version__)")).toBe("99.0");
    expect(await run("!python -c 'import six; print(six.__version__)'")).toBe("99.0");
    expect(await run("%pip uninstall -y six")).toContain("Successfully uninstalled six-99.0");
    expect(await run("import six; print(six.__version__)")).toBe(shared);
    expect(await run("%pip uninstall -y six")).toMatch(/outside environment|Can't uninstall/);
    expect(await run("open('/opt/sluice/environment/x', 'w')")).toContain("OSError");
    expect((await readdir(state.environment)).includes("x")).toBe(false);
  }, 120_000);
});

/** What the server tells JupyterLab's page. */
async function pageConfig({ endpoint, token }: JupyterServer): Promise<Record<string, unknown>> {
  const lab = `${baseUrlOf(endpoint)}/lab`;
  const answer = await fetchOf(endpoint)(lab, { headers: { Authorization: `token ${token}` } });
  const found = /jupyter-config-data" type="application\/json">\s*(\{.*?\})\s*<\/script>/s.exec(await answer.text());
  return JSON.parse(found?.[1] ?? "{}") as Record<string, unknown>;
}

describe("JupyterLab", () => {
  it("leaves signing out and stopping to the portal", async () => {
    const { server } = await ensureRunning();
    expect(await pageConfig(server)).toMatchObject({ quitButton: false });
  }, 60_000);
});

describe("a command in a terminal", () => {
  it("installs into the overlay with pip, pip3 and uv pip", async () => {
    const { run } = await ensureRunning();
    await copyFile(await findUv(state.stateDir, () => undefined), path.join(paths().home, "uv"));
    const wheel = await layWheel("terminalprobe", "1.0");
    const site = await run("import site; print(site.getsitepackages()[0])");
    expect(site).toMatch(/^\/opt\/sluice\/packages\//);
    for (const pip of ["pip", "pip3", "./uv pip"]) {
      expect(await run(`!${pip} install --no-index ./${wheel} 2>&1`)).toContain("terminalprobe");
      expect(await run("import terminalprobe; print(terminalprobe.__file__)\n!terminalprobe-command")).toBe(
        `${site}/terminalprobe.py\nterminalprobe 1.0 runs`,
      );
      expect(await run("!pip uninstall -y terminalprobe 2>&1")).toContain("Successfully uninstalled terminalprobe-1.0");
    }
  }, 240_000);

  it("comes from the workspace's own package if that provides it", async () => {
    const { run } = await ensureRunning();
    const wheel = await layWheel("f2py", "1.0", "f2py");
    expect(await run("!f2py -v")).toMatch(/^\d/);
    await run(`!pip install --no-index ./${wheel}`);
    expect(await run("!f2py -v")).toBe("f2py 1.0 runs");
    await run("!pip uninstall -y f2py");
    expect(await run("!f2py -v")).toMatch(/^\d/);
  }, 120_000);

  it("disables a lab extension of the environment, also for the server that runs", async () => {
    const { run, server } = await ensureRunning();
    const disabled = async () => (await pageConfig(server)).disabledExtensions;
    expect(await disabled()).not.toContain("@jupyterlab/celltags-extension");
    await run("!jupyter labextension disable @jupyterlab/celltags-extension 2>&1");
    expect(await run("!jupyter labextension list 2>&1")).toContain("sluice-gpu");
    expect(await disabled()).toContain("@jupyterlab/celltags-extension");
    await run("!jupyter labextension enable @jupyterlab/celltags-extension 2>&1");
    expect(await disabled()).not.toContain("@jupyterlab/celltags-extension");
  }, 120_000);
});

describe("a new home", () => {
  it("has matplotlib's font list, so that the first import makes none", async () => {
    const { run } = await ensureRunning();
    const lists =
      "[(file.name, file.stat().st_mtime_ns) for file in pathlib.Path.home().glob('.cache/matplotlib/fontlist-*')]";
    const found = await run(
      `import pathlib\nbefore = ${lists}\nimport matplotlib.font_manager as fonts\nprint(len(before), before == ${lists}, before[0][0] == f'fontlist-v{fonts.FontManager.__version__}.json')`,
    );
    expect(found).toBe("1 True True");
  }, 60_000);
});

/** What a kernel that stays prints in answer to `code`. */
async function inKernel(connection: Kernel.IKernelConnection, code: string): Promise<string> {
  let printed = "";
  const future = connection.requestExecute({ code });
  future.onIOPub = ({ content }) => {
    if ("text" in content) printed += String(content.text);
    if ("ename" in content) printed += String(content.ename);
  };
  await future.done;
  return printed.trim();
}

describe("a kernel", () => {
  const listening = `
import psutil, sys
from ipykernel.connect import get_connection_info
me = psutil.Process()
ports = [c.laddr.port for c in me.net_connections("tcp") if c.status == "LISTEN"]
# This one takes output of forked children in, behind a password, and gives nothing out.
taking = getattr(sys.stdout.pub_thread, "_pipe_port", None)
print(get_connection_info(unpack=True)["transport"], [port for port in ports if port != taking])`;

  it("has no port that other workspaces could listen to, and no debugger", async () => {
    const { run, server } = await ensureRunning();
    expect(await run(listening)).toBe("ipc []");
    const specs = await fetchOf(server.endpoint)(`${baseUrlOf(server.endpoint)}/api/kernelspecs`, {
      headers: { authorization: `token ${server.token}` },
    });
    expect(await specs.json()).toMatchObject({ kernelspecs: { python3: { spec: { metadata: { debugger: false } } } } });
  }, 60_000);

  it("is interrupted, restarted, and brought back when it is killed", async () => {
    const { server } = await ensureRunning();
    const manager = new KernelManager({ serverSettings: serverSettings(server) });
    const kernel = await manager.startNew({ name: "python3" });
    try {
      expect(await inKernel(kernel, "x = 1; print(x)")).toBe("1");
      const sleeping = inKernel(kernel, "import time\nprint('sleeps', flush=True)\ntime.sleep(60)");
      await expect.poll(() => kernel.status).toBe("busy");
      await sleep(300);
      await kernel.interrupt();
      expect(await sleeping).toContain("KeyboardInterrupt");
      await kernel.restart();
      expect(await inKernel(kernel, "print(x)")).toBe("NameError");
      const seen: string[] = [];
      kernel.statusChanged.connect((_sender, status) => seen.push(status));
      const killed = kernel.requestExecute({ code: "import os, signal; os.kill(os.getpid(), signal.SIGKILL)" });
      killed.done.catch(() => undefined);
      await expect.poll(() => seen, { timeout: 20_000 }).toContain("autorestarting");
      // The answer to the client's own question can be lost while the kernel starts again.
      const statusNow = async () => {
        await Promise.race([kernel.requestKernelInfo().catch(() => undefined), sleep(2_000)]);
        return kernel.status;
      };
      await expect.poll(statusNow, { timeout: 30_000, interval: 200 }).toBe("idle");
      expect(await inKernel(kernel, "print(6 * 7)")).toBe("42");
    } finally {
      await kernel.shutdown();
      manager.dispose();
    }
    expect(await readdir(path.join(paths().run, "jupyter", "runtime"))).not.toContainEqual(
      expect.stringMatching(/-ipc-/),
    );
  }, 90_000);

  it("that a program of Jupyter starts on a port speaks in cipher", async () => {
    const { run } = await ensureRunning();
    const notebook = {
      cells: [{ cell_type: "code", id: "a", metadata: {}, outputs: [], execution_count: null, source: "print(6 * 7)" }],
      metadata: { kernelspec: { name: "python3", display_name: "Python 3", language: "python" } },
      nbformat: 4,
      nbformat_minor: 5,
    };
    await writeFile(path.join(paths().home, "run.ipynb"), JSON.stringify(notebook));
    const said = await run("!jupyter nbconvert --execute --to markdown --stdout run.ipynb 2>&1");
    expect(said).toMatch(/^ +42$/m);
    expect(said).not.toContain("without encryption");
  }, 60_000);
});

describe("a workspace that another version started", () => {
  it("is found and ended by a handle that lacks what came later", async () => {
    await start();
    const {
      launcher: name,
      generation,
      pid,
      startTime,
      isolated,
    } = JSON.parse(await readFile(paths().handle, "utf8")) as ProcessStart & Record<string, unknown>;
    const older = { launcher: name, generation, pid, startTime, port: 8888, isolated };
    await writeFile(paths().handle, JSON.stringify(older));
    const seen = await launcher.observe(spec.id);
    expect(seen).toMatchObject({ state: "stopped", reason: expect.stringContaining("older version") as string });
    // It may be the one that looks into this old build.
    const build = path.join(state.stateDir, "environments", "cuda-python-0123456789abcdef");
    await mkdir(build);
    await utimes(build, 0, 0);
    await prune(state.stateDir, "cuda-python", path.basename(state.environment));
    expect(existsSync(build)).toBe(true);
    await launcher.stop(spec.id);
    expect(await isAlive(older)).toBe(false);
    expect(await launcher.observe(spec.id)).toEqual({ state: "stopped" });
    await prune(state.stateDir, "cuda-python", path.basename(state.environment));
    expect(existsSync(build)).toBe(false);
  }, 60_000);

  it("is not taken for stopped when its handle cannot be read", async () => {
    await ensureRunning();
    const handle = await readFile(paths().handle, "utf8");
    const running = JSON.parse(handle) as ProcessStart;
    for (const broken of ["", "{", JSON.stringify({ launcher: "local", pid: "x" })]) {
      await writeFile(paths().handle, broken);
      await expect(launcher.observe(spec.id)).rejects.toThrow("Whether the workspace runs is unknown");
      await expect(launcher.stop(spec.id)).rejects.toThrow("Whether the workspace runs is unknown");
      await expect(launcher.remove(spec.id)).rejects.toThrow("Whether the workspace runs is unknown");
    }
    expect(await isAlive(running)).toBe(true);
    await writeFile(paths().handle, handle);
    await launcher.stop(spec.id);
    expect(await isAlive(running)).toBe(false);
  }, 60_000);
});

describe("a workspace that lays links for the launcher to follow", () => {
  it("leads nobody outside of it", async () => {
    const { run } = await ensureRunning();
    const victim = path.join(state.stateDir, "victim");
    await mkdir(victim);
    await writeFile(path.join(victim, "config"), "untouched");
    const lay = [
      "import os, shutil",
      `os.remove('/opt/sluice/packages/pyvenv.cfg'); os.symlink('${victim}/config', '/opt/sluice/packages/pyvenv.cfg')`,
      `shutil.rmtree('/opt/sluice/packages/etc'); os.symlink('${victim}', '/opt/sluice/packages/etc')`,
      `os.makedirs('/tmp/x'); os.symlink('${victim}', '/tmp/x/y'); os.symlink('${victim}', '/run/sluice/jupyter/kernels/z')`,
      "print('laid')",
    ];
    expect(await run(lay.join("\n"))).toBe("laid");
    const before = await stat(victim);
    await start();
    expect(await readdir(victim)).toEqual(["config"]);
    expect(await readFile(path.join(victim, "config"), "utf8")).toBe("untouched");
    expect((await stat(victim)).uid).toBe(before.uid);
    await launcher.remove(spec.id);
    expect(await readdir(victim)).toEqual(["config"]);
  }, 90_000);
});

describe("a running workspace", () => {
  it("has terminals", async () => {
    const { run } = await ensureRunning();
    expect(await run("import os, pty; print(os.ttyname(pty.openpty()[1]))")).toMatch(/^\/dev\/pts\/\d+$/);
  }, 60_000);

  it("is busy while a command runs in the foreground of a terminal", async () => {
    const { server } = await ensureRunning();
    const settings = serverSettings(server);
    const terminals = new URL("api/terminals", settings.baseUrl).href;
    const made = await ServerConnection.makeRequest(terminals, { method: "POST" }, settings);
    const { name } = (await made.json()) as { name: string };
    const socket = new settings.WebSocket(new URL(`terminals/websocket/${name}`, settings.wsUrl));
    let printed = "";
    socket.onmessage = ({ data }) => {
      printed += String((JSON.parse(String(data)) as unknown[])[1]);
    };
    const type = (text: string) => socket.send(JSON.stringify(["stdin", `${text}\r`]));
    // Far in the future, to separate the time of the last output from current work.
    const later = new Date(Date.now() + 3_600_000);
    const isAtWork = async () => (await lastActivity(server, later))?.getTime() === later.getTime();
    await expect.poll(() => printed, { timeout: 30_000 }).toContain("$ ");
    expect(await isAtWork()).toBe(false);
    type("sleep 600");
    await expect.poll(isAtWork, { timeout: 20_000 }).toBe(true);
    type("\u0003");
    await expect.poll(isAtWork, { timeout: 20_000 }).toBe(false);
    type("sleep 600 &");
    await expect.poll(() => printed, { timeout: 20_000 }).toContain("[1] ");
    expect(await isAtWork()).toBe(false);
    socket.close();
  }, 120_000);

  it("is found again by another broker, with its kernels alive, and is not started twice", async () => {
    const first = await ensureRunning();
    const later = new LocalLauncher({ stateDir: state.stateDir, wheel: undefined });
    const seen = await later.observe(spec.id);
    expect(seen).toMatchObject({ state: "running", endpoint: first.endpoint });
    expect(await later.ensure(spec, silent, signal)).toEqual({ endpoint: first.endpoint, handle: first.handle });
    expect(await first.run("print(6 * 7)")).toBe("42");
  }, 60_000);

  it("is not taken for running when another process has got its pid", async () => {
    await ensureRunning();
    const handle = JSON.parse(await readFile(paths().handle, "utf8")) as { pid: number; startTime: number };
    expect(await isAlive(handle)).toBe(true);
    expect(await isAlive({ ...handle, startTime: handle.startTime - 1 })).toBe(false);
  }, 60_000);

  it("shows the credential and Jupyter's token to nobody else on the machine", async () => {
    await ensureRunning();
    expect((await stat(path.join(paths().run, "credential"))).mode & 0o777).toBe(0o600);
    expect((await stat(paths().base)).mode & 0o777).toBe(0o700);
    const lines = execFileSync("ps", ["-eo", "args"], { encoding: "utf8" });
    expect(lines).toContain(state.stateDir);
    expect(lines).not.toContain(spec.serverToken);
    expect(lines).not.toContain(spec.credential);
  }, 60_000);

  it("ends with everything in it, also what ignores the polite signal, and its files go with remove", async () => {
    const { run } = await ensureRunning();
    const before = JSON.parse(await readFile(paths().handle, "utf8")) as { pid: number; startTime: number };
    await run(
      "import subprocess; subprocess.Popen(['sh', '-c', 'trap \"\" TERM HUP INT; sleep 600 & wait'], start_new_session=True)",
    );
    await launcher.stop(spec.id);
    expect(await isAlive(before)).toBe(false);
    expect(execFileSync("ps", ["-eo", "args"], { encoding: "utf8" })).not.toContain(state.stateDir);
    expect(await launcher.observe(spec.id)).toEqual({ state: "stopped" });
    await launcher.remove(spec.id);
    expect(existsSync(paths().base)).toBe(false);
  }, 60_000);

  it("that ended by itself is seen as stopped, with a sentence", async () => {
    await ensureRunning();
    const { pid } = JSON.parse(await readFile(paths().handle, "utf8")) as { pid: number };
    process.kill(pid, "SIGKILL");
    await expect.poll(async () => (await launcher.observe(spec.id)).state).toBe("stopped");
    expect(await launcher.observe(spec.id)).toMatchObject({
      reason: expect.stringContaining("ended by itself") as string,
    });
  }, 60_000);
});
