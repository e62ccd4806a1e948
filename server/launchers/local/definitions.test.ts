import { readFile } from "node:fs/promises";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { definitionFolders } from "#server/services/image/register.ts";
import { readDefinition } from "./environment.ts";

const ROOT = path.resolve("server", "environments");

const lines = async (folder: string, file: string) => {
  const text = await readFile(path.join(ROOT, folder, file), "utf8");
  return text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
};
const nameIn = (line: string) => /^[A-Za-z0-9._-]+/.exec(line)?.[0] ?? "";

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

  it("holds what it asks for, and nothing that Sluice brings itself", async () => {
    const locked = new Set((await lines(folder, "requirements.lock")).map(nameIn));
    for (const wanted of await lines(folder, "requirements.in")) expect(locked).toContain(nameIn(wanted));
    for (const excluded of await lines(folder, "excludes.txt")) expect(locked).not.toContain(excluded);
  });
});
