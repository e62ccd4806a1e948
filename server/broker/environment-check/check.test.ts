/** A real check of what cannot be locked, by a real loop on a real database; one that passes is the journey's. */
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { EgressPolicy } from "#server/contracts/egress.ts";
import { imageVersions, teams } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import { lockDefinition } from "#server/launchers/local/lock-definition.ts";
import { isolation } from "#server/launchers/local/sandbox.ts";
import { logger } from "#server/log.ts";
import { getVersion } from "#server/services/image/get-version.ts";
import { list } from "#server/services/image/list.ts";
import { listEvents } from "#server/services/image/list-events.ts";
import { propose } from "#server/services/image/propose.ts";
import { setState } from "#server/services/image/set-state.ts";
import { withdraw } from "#server/services/image/withdraw.ts";
import { makeWorld, type World } from "#server/services/testing.ts";
import { create } from "#server/services/workspace/create.ts";
import { deleteFiles } from "#server/services/workspace/delete-files.ts";
import { remove } from "#server/services/workspace/remove.ts";
import { CHECK_LIMITS } from "./check.ts";
import { startEnvironmentChecks } from "./loop.ts";
import { sweepBuilds } from "./sweep-builds.ts";

let test: TestDatabase;
let world: World;
let stateDir: string;

beforeAll(async () => {
  stateDir = await mkdtemp(path.join(tmpdir(), "sluice-check-"));
  await mkdir(path.join(stateDir, "environments"), { recursive: true });
  process.env.SLUICE_STATE_DIR = stateDir;
  resetEnv();
  test = await useTestDatabase({ max: 8 });
  world = await makeWorld(test.db);
});
afterAll(async () => {
  await test.drop();
  await rm(stateDir, { recursive: true, force: true });
});

it("names the step that failed, shows the last lines, and offers nothing", async () => {
  const { id } = await propose(world.lead.ctx, {
    ...{ name: "never", title: "Never", description: "", teamId: world.team },
    source: { kind: "packages", base: "cuda-python", requirements: "numpy<1.0" },
  });
  // A broker that was killed has begun it.
  await test.db.update(imageVersions).set({ check: "running" }).where(eq(imageVersions.id, id));
  const checks = startEnvironmentChecks(test, logger("test"));
  try {
    const proposed = async () => (await getVersion(world.lead.ctx, { id })).proposed;
    await expect.poll(async () => (await proposed())?.check, { timeout: 60_000, interval: 100 }).toBe("failed");
    expect((await proposed())?.checkMessage).toContain("Its packages could not be locked.");
  } finally {
    await checks.stop();
  }
  const { events } = await listEvents(world.lead.ctx, { id });
  expect(events.at(-1)).toMatchObject({ kind: "step-failed", step: "lock" });
  expect(events.map(({ message }) => message).join("\n")).toMatch(/numpy/);
  expect((await list(world.lead.ctx)).images.map(({ name }) => name)).toEqual(["cuda-python"]);
}, 90_000);

it.runIf(isolation().isolated)(
  "applies the outgoing network policy of the team that proposes",
  async () => {
    const policy = async (egressPolicy: EgressPolicy) =>
      void (await test.db.update(teams).set({ egressPolicy }).where(eq(teams.id, world.team)));
    await policy({ mode: "none", allow: [] });
    const { id } = await propose(world.lead.ctx, {
      ...{ name: "closed", title: "Closed", description: "", teamId: world.team },
      source: { kind: "packages", base: "cuda-python", requirements: "humanize" },
    });
    const checks = startEnvironmentChecks(test, logger("test"));
    try {
      const message = async () => (await getVersion(world.lead.ctx, { id })).proposed?.checkMessage;
      await expect.poll(message, { timeout: 100_000, interval: 100 }).toContain("Its packages could not be locked.");
    } finally {
      await checks.stop();
      await policy({ mode: "all", allow: [] });
    }
    const { events } = await listEvents(world.lead.ctx, { id });
    expect(events.map(({ message }) => message).join("\n")).toContain("outgoing network policy applies, mode none");
    await withdraw(world.lead.ctx, { id });
  },
  120_000,
);

it("locks the same packages to the same version, with hashes, whatever the order", async () => {
  const wanted = { name: "words", title: "Words", description: "", base: "cuda-python", python: undefined };
  const lock = (requirements: string) =>
    lockDefinition({ ...wanted, requirements }, { stateDir, onLine: () => undefined });
  const [one, two] = [await lock("humanize\nnumpy"), await lock("numpy\nhumanize # words")];
  expect(one.version).toBe(two.version);
  expect(one.word).toBe(`words--${one.version}`);
  expect(one.lock).toMatch(/^humanize==\d[^\n]* \\\n {4}--hash=sha256:[0-9a-f]{64}/m);
  expect(one.definition.python).toMatch(/^==3\.\d+\.\*$/);
}, 60_000);

it("ends what takes too long, and lays a locked definition again that was lost", async () => {
  const source = { kind: "packages", base: "cuda-python", requirements: "humanize" } as const;
  const { id } = await propose(world.lead.ctx, {
    ...{ name: "lost", title: "Lost", description: "", teamId: world.team },
    source,
  });
  const wanted = { name: "lost", title: "Lost", description: "", ...source, python: undefined };
  const { word, version, lock, definition } = await lockDefinition(wanted, { stateDir, onLine: () => undefined });
  await test.db
    .update(imageVersions)
    .set({ definition: word, version, lock, spec: { env: {}, definition } })
    .where(eq(imageVersions.id, id));
  // No wheel is built here: a build waits for it, and one without a definition would fail at once.
  const checks = startEnvironmentChecks(test, logger("test"), { ...CHECK_LIMITS, buildMs: 600 });
  const message = async () => (await getVersion(world.lead.ctx, { id })).proposed?.checkMessage;
  try {
    const said = "It could not be built. It took longer than 0.01 minutes.";
    await expect.poll(message, { timeout: 20_000, interval: 50 }).toBe(said);
  } finally {
    await checks.stop();
  }
}, 60_000);

it("keeps builds of what is undecided, approved or had by a workspace, and deletes all others", async () => {
  const source = { kind: "packages", base: "cuda-python", requirements: "humanize" } as const;
  const proposed = { ...{ title: "Kept", description: "", teamId: world.team }, source };
  const built = async (name: string, set: Partial<typeof imageVersions.$inferInsert>) => {
    const { id } = await propose(world.lead.ctx, { ...proposed, name });
    const word = `${name}--${id.slice(-6)}${"0".repeat(6)}`.replaceAll(/[^a-z0-9-]|(?<=--.*)[g-z]/g, "0");
    for (const folder of [`environments/${word}-${"0".repeat(16)}/bin`, `definitions/${word}`])
      await mkdir(path.join(stateDir, folder), { recursive: true });
    await writeFile(path.join(stateDir, "environments", `${word}.json`), "{}");
    await test.db
      .update(imageVersions)
      .set({ check: "passed", definition: word, version: word.slice(-12), ...set })
      .where(eq(imageVersions.id, id));
    return { id, word };
  };
  const isThere = ({ word }: { word: string }) =>
    [`environments/${word}-${"0".repeat(16)}`, `environments/${word}.json`, `definitions/${word}`].map((each) =>
      existsSync(path.join(stateDir, each)),
    );
  const [all, none] = [Array(3).fill(true), Array(3).fill(false)];
  const approved = { state: "approved", approvedAt: new Date() } as const;
  const passed = await built("passed", {});
  const failed = await built("failed", { check: "failed" });
  const used = await built("used", approved);
  const retired = await built("retired", approved);
  const { id: workspace } = await create(world.member.ctx, { name: "uses it", image: "used" });
  await writeFile(path.join(stateDir, "environments", "cuda-python.json"), "{}");
  await sweepBuilds(test.db, stateDir);
  expect([passed, failed, used, retired].map(isThere)).toEqual([all, none, all, all]);

  await withdraw(world.lead.ctx, { id: passed.id });
  for (const { id } of [used, retired]) await setState(world.admin.ctx, { id, state: "retired" });
  await sweepBuilds(test.db, stateDir);
  expect([passed, used, retired].map(isThere)).toEqual([none, all, none]);
  // A removed workspace can be restored while its files are kept.
  await remove(world.member.ctx, { id: workspace });
  await sweepBuilds(test.db, stateDir);
  expect(isThere(used)).toEqual(all);
  await deleteFiles(world.member.ctx, { id: workspace });
  await sweepBuilds(test.db, stateDir);
  expect(isThere(used)).toEqual(none);
  expect(existsSync(path.join(stateDir, "environments", "cuda-python.json"))).toBe(true);
});
