import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { definitionFolders } from "#server/services/image/register.ts";
import { readDefinition, runUv } from "./environment.ts";
import { findUv } from "./uv.ts";

const ROOT = path.resolve("server", "environments");

const lines = async (folder: string, file: string) => {
  const text = await readFile(path.join(ROOT, folder, file), "utf8");
  return text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
};
const nameIn = (line: string) => /^[A-Za-z0-9._-]+/.exec(line)?.[0] ?? "";

let stateDir: string;
beforeAll(async () => {
  stateDir = await mkdtemp(path.join(tmpdir(), "sluice-definitions-"));
});
afterAll(async () => await rm(stateDir, { recursive: true, force: true }));

describe.each(await definitionFolders())("the environment %s", (folder) => {
  it("is defined under the name of its folder", async () => {
    const found = await readDefinition(folder, path.resolve(".sluice"));
    expect(found?.definition).toMatchObject({ name: folder, requirements: "requirements.lock" });
  });

  it("pins each package to a version and its files' hashes", async () => {
    const lock = (await lines(folder, "requirements.lock")).join("\n").replaceAll("\\\n", " ").split("\n");
    expect(lock.length).toBeGreaterThan(50);
    for (const entry of lock) expect(entry).toMatch(/^[a-z0-9._-]+==[^\s]+ ?;?.* --hash=sha256:[0-9a-f]{64}/);
  });

  it("has settings of JupyterLab that are there, and a program for what no index has", async () => {
    const found = await readDefinition(folder, stateDir);
    const { labSettings = "", build } = found?.definition ?? {};
    expect(JSON.parse(await readFile(path.join(ROOT, folder, labSettings), "utf8"))).toBeTypeOf("object");
    if (build !== undefined) expect(await readFile(build, "utf8")).toContain("--cache");
  });

  // Hashes are compared when files are installed, for all environments in `npm run soak -- images`.
  it("names versions that the package index has, each with a file for this machine", async () => {
    const said: string[] = [];
    const options = { stateDir, onLine: (line: string) => said.push(line) };
    const uv = await findUv(path.resolve(".sluice"), options.onLine);
    const into = ["pip", "install", "--dry-run", "--target", path.join(stateDir, folder), "--no-deps"];
    await runUv(uv, [...into, "--require-hashes", "-r", path.join(ROOT, folder, "requirements.lock")], options);
    expect(said.join("\n")).toMatch(/Would install \d+ packages/);
  });

  it("holds what it asks for, and nothing that Sluice brings itself", async () => {
    const locked = new Set((await lines(folder, "requirements.lock")).map(nameIn));
    for (const wanted of await lines(folder, "requirements.in")) expect(locked).toContain(nameIn(wanted));
    for (const excluded of await lines(folder, "excludes.txt")) expect(locked).not.toContain(excluded);
  });
});
