/**
 * The pack is small enough to be carried, and runs with nothing but what is in it. There is no GPU here: the "card" is a
 * gpud on the software GPU behind our own client, which is a CUDA driver like any other.
 */
import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { buildNativeForTests } from "#scripts/start/builds.ts";
import { MOST_BYTES, pack } from "./pack.ts";

const root = path.resolve(import.meta.dirname, "../..");
const report = z.looseObject({
  device: z.string(),
  parts: z.record(z.string(), z.looseObject({ seconds: z.number() })),
});
let folder = "";

beforeAll(async () => {
  // Nothing is built where `npm test` has done so before.
  await buildNativeForTests(root, () => {});
  folder = await mkdtemp(path.join(tmpdir(), "sluice-gpu-check-"));
}, 900_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

test("the pack can be carried, and its parts run on a driver that is named", async () => {
  const where = path.join(folder, "pack");
  const { bytes } = await pack(root, where);
  expect(bytes).toBeLessThan(MOST_BYTES);

  const found = ["SLUICE_OWNER_SOCKET", "SLUICE_RUNTIME_DIR", "SLUICE_GPU_TYPE"];
  const check = [
    [
      "python3",
      path.join(where, "run.py"),
      "--out",
      path.join(folder, "results"),
      "--parts",
      "1,operations,4,5",
      "--short",
    ],
    ["--driver", "libcuda.so.1", "--memory", String(256 * 2 ** 20), "--copy-mib", "8", "--park-mib", "64"],
    ["--limit", "100", ...found.flatMap((name) => ["--worker-env", name])],
  ].flat();
  const loopback = path.join(where, "native", "sluice-loopback");
  const { stdout } = await promisify(execFile)(
    loopback,
    ["--as-driver", "--memory", String(3 * 2 ** 30), "--", ...check],
    {
      env: { ...process.env, SLUICE_NATIVE_DIR: path.join(where, "native") },
    },
  );
  const [file] = (await readdir(path.join(folder, "results"))).filter((name) => name.endsWith(".json"));
  const text = await readFile(path.join(folder, "results", file ?? "none"), "utf8");
  const { parts } = report.parse(JSON.parse(text));
  expect(parts, stdout).toMatchObject({
    "1": { ok: true },
    "4": { ok: true },
    "5": { ok: true, parked_bytes: 64 * 2 ** 20 },
  });
  // Whether PyTorch is here or not, the part says what there is to say.
  expect(parts.operations).toBeDefined();
}, 120_000);
