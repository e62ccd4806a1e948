/** A real check of what cannot be locked, by a real loop on a real database; one that passes is the journey's. */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { imageVersions } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import { lockDefinition } from "#server/launchers/local/lock-definition.ts";
import { logger } from "#server/log.ts";
import { getVersion } from "#server/services/image/get-version.ts";
import { list } from "#server/services/image/list.ts";
import { listEvents } from "#server/services/image/list-events.ts";
import { propose } from "#server/services/image/propose.ts";
import { makeWorld, type World } from "#server/services/testing.ts";
import { startEnvironmentChecks } from "./loop.ts";

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
