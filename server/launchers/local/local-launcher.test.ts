import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, it } from "vitest";
import { LaunchRefused } from "#server/launchers/launcher.ts";
import { aWorkspaceSpec } from "#server/launchers/testing.ts";
import { LocalLauncher } from "./local-launcher.ts";

it("says that an environment is built now, where nobody has built it yet", async () => {
  const stateDir = await mkdtemp(path.join(tmpdir(), "sluice-launcher-"));
  const spec = { ...aWorkspaceSpec({ generation: 1 }), environment: "jax", allowUnisolated: true };
  const title = async () => {
    const stopped = new AbortController();
    let told = "";
    const started = (_: string, message: string) => {
      told = message;
      stopped.abort(new Error("That is enough."));
    };
    const report = { started, done: () => undefined, log: () => undefined };
    const launcher = new LocalLauncher({ stateDir, wheel: undefined });
    await expect(launcher.ensure(spec, report, stopped.signal)).rejects.toThrow("That is enough.");
    return told;
  };
  try {
    expect(await title()).toBe("Building the environment jax, once for all workspaces: this takes minutes");
    const environments = path.join(stateDir, "environments");
    await mkdir(path.join(environments, "jax-abc"), { recursive: true });
    await writeFile(path.join(environments, "jax.json"), JSON.stringify({ state: "ready", hash: "abc" }));
    expect(await title()).toBe("Looking for the environment jax");
  } finally {
    await rm(stateDir, { recursive: true, force: true });
  }
});

it("refuses launches while the disk is short, says what to do, and launches again when space is back", async () => {
  const stateDir = await mkdtemp(path.join(tmpdir(), "sluice-launcher-"));
  const MIB = 1024 ** 2;
  let availableBytes = 100 * MIB;
  const readFileSystem = async () => ({ availableBytes, totalBytes: 100_000 * MIB });
  const launcher = new LocalLauncher({ stateDir, wheel: undefined, readFileSystem });
  const spec = { ...aWorkspaceSpec({ generation: 1 }), allowUnisolated: true };
  const launch = async () => {
    const stop = () => {
      throw new Error("The launch has begun.");
    };
    const report = { started: stop, done: () => undefined, log: () => undefined };
    return await launcher.ensure(spec, report, new AbortController().signal);
  };
  try {
    const refused = launch();
    await expect(refused).rejects.toBeInstanceOf(LaunchRefused);
    await expect(refused).rejects.toThrow(/is almost full: 100 MiB left\..* Delete unneeded files/);
    expect(await launcher.refusal()).toMatchObject({ next: expect.stringContaining("enlarge the disk") as string });
    availableBytes = 1_000 * MIB;
    expect(await launcher.refusal()).toBeUndefined();
    await expect(launch()).rejects.toThrow("The launch has begun.");
  } finally {
    await rm(stateDir, { recursive: true, force: true });
  }
});
