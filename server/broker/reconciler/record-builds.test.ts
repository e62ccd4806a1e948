/** Builds that the reconciler copies into the catalog, beside one that cannot be read. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { eq } from "drizzle-orm";
import pino from "pino";
import { afterAll, beforeAll, expect, it } from "vitest";
import { images, imageVersions } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { newId } from "#server/ids.ts";
import { recordBuilds } from "./record-builds.ts";

let folder: string;
let database: TestDatabase;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-builds-"));
  database = await useTestDatabase({ max: 4 });
});
afterAll(async () => {
  await database.drop();
  await rm(folder, { recursive: true, force: true });
});

/** A version in the catalog, with the state of its build on disk. */
async function version(name: string, state: object): Promise<string> {
  const [imageId, id] = [newId("img"), newId("imv")];
  await database.db.insert(images).values({ id: imageId, name, title: name, description: "For tests." });
  await database.db
    .insert(imageVersions)
    .values({ ...{ id, imageId, version: "0123456789ab", state: "approved" }, spec: {}, buildState: "pending" });
  const environments = path.join(folder, "environments");
  await mkdir(environments, { recursive: true });
  await writeFile(path.join(environments, `${name}.json`), JSON.stringify(state));
  return id;
}

it("records the other builds where one cannot be read, reads that one once, and drops NUL from messages", async () => {
  // Its folder is empty.
  await version("broken", { state: "ready", hash: "0".repeat(16) });
  await mkdir(path.join(folder, "environments", `broken-${"0".repeat(16)}`));
  const failed = await version("failed", { state: "failed", message: "uv says \0 no" });
  const lines: string[] = [];
  const log = pino({ level: "warn" }, { write: (line: string) => lines.push(line) });
  for (let round = 0; round < 3; round++) await recordBuilds(database.db, folder, log);
  expect(lines).toHaveLength(1);
  const [row] = await database.db.select().from(imageVersions).where(eq(imageVersions.id, failed));
  expect(row).toMatchObject({ buildState: "failed", buildMessage: "uv says  no" });
});
