import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, it } from "vitest";
import { fingerprint } from "./fingerprint.ts";

it("changes with what is built, and not with its tests", async () => {
  const root = await mkdtemp(path.join(tmpdir(), "sluice-fingerprint-"));
  const of = async (file: string, text: string) => {
    await writeFile(path.join(root, file), text);
    return await fingerprint(root, ["."]);
  };
  const first = await of("pods.ts", "1");
  expect(await of("pods.test.ts", "1")).toBe(first);
  expect(await of("pods.cluster.ts", "1")).toBe(first);
  expect(await of("pods.ts", "2")).not.toBe(first);
});
