import { mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { findOrMake } from "./kept.ts";

const HOUR_MS = 3_600_000;
const [OLD, NEW] = ["0123456789abcdef", "fedcba9876543210"];
const silent = () => undefined;

let folder: string;
beforeEach(async () => {
  const cache = await mkdtemp(path.join(tmpdir(), "sluice-kept-"));
  vi.stubEnv("XDG_CACHE_HOME", cache);
  folder = path.join(cache, "sluice", "images");
  await mkdir(folder, { recursive: true });
});
afterEach(async () => {
  await rm(process.env.XDG_CACHE_HOME ?? "", { recursive: true });
  vi.unstubAllEnvs();
});

/** Puts something there that was asked for last so long ago. */
async function put(name: string, hours: number): Promise<void> {
  const place = path.join(folder, name);
  await writeFile(place, name);
  const then = new Date(Date.now() - hours * HOUR_MS);
  await utimes(place, then, then);
}
const ask = async (kind: string, tag: string, ...endings: string[]) =>
  await findOrMake({ kind, tag, endings }, silent, async (...places) => {
    for (const place of places) await writeFile(place, "made");
  });

it("makes what is missing, and finds what is there", async () => {
  const [image = "", bill = ""] = await ask("gpud", NEW, ".tar", ".cdx.json");
  expect([image, bill].map((place) => path.relative(folder, place))).toEqual([
    `gpud-${NEW}.tar`,
    `gpud-${NEW}.cdx.json`,
  ]);
  await writeFile(image, "as before");
  await ask("gpud", NEW, ".tar", ".cdx.json");
  expect(await readFile(image, "utf8")).toBe("as before");
  await rm(bill);
  await ask("gpud", NEW, ".tar", ".cdx.json");
  expect(await readFile(image, "utf8")).toBe("made");
});

it("is made by one of those that ask at the same time", async () => {
  let made = 0;
  const count = async (place: string) => {
    made += 1;
    await sleep(100);
    await writeFile(place, "");
  };
  const asked = { kind: "gpud", tag: NEW, endings: [".tar"] } as const;
  await Promise.all([1, 2, 3].map(async () => await findOrMake(asked, silent, count)));
  expect(made).toBe(1);
});

it("drops what no image of today is made of, and leaves what another run may be about to load", async () => {
  await put(`gpud-${OLD}.tar`, 2);
  await put(`gpud-${OLD}.cdx.json`, 2);
  await put(`gpud-${NEW}.tar.layer`, 2);
  await put("gpud-0000000000000000.tar", 0.5);
  // Of other kinds, whose images this one says nothing of.
  await put(`gpud-next-${OLD}.tar`, 2);
  await put(`workspace-jax-${OLD}.tar`, 2);
  await ask("gpud", NEW, ".tar");
  const kept = ["gpud-0000000000000000.tar", `gpud-${NEW}.tar`, `gpud-next-${OLD}.tar`, `workspace-jax-${OLD}.tar`];
  expect((await readdir(folder)).sort()).toEqual(kept.sort());
});

it("keeps what is asked for however old it is, as young from then on, and drops what nobody asks for in a month", async () => {
  await put(`workspace-jax-${OLD}.tar`, 31 * 24);
  await put(`gpud-${OLD}.tar`, 31 * 24);
  const [image = ""] = await ask("gpud", OLD, ".tar");
  expect(await readFile(image, "utf8")).toBe(`gpud-${OLD}.tar`);
  expect(Date.now() - (await stat(image)).mtimeMs).toBeLessThan(HOUR_MS);
  await ask("gpud", NEW, ".tar");
  expect((await readdir(folder)).sort()).toEqual([`gpud-${NEW}.tar`, `gpud-${OLD}.tar`].sort());
});
