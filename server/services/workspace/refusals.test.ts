import { eq } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { egressRefusals, workspaces } from "#server/db/schema/index.ts";
import { createTestDatabase, resetTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { MOST_REFUSALS, recordRefusals } from "./record-refusals.ts";
import { refusals } from "./refusals.ts";
import { remove } from "./remove.ts";

const reason = "The outgoing network policy of this team is: none.";
const at = (minute: number) => new Date(Date.UTC(2026, 10, 28, 12, minute));

let test: TestDatabase;
let world: World;
let id: string;

beforeAll(async () => {
  test = await createTestDatabase();
});
beforeEach(async () => {
  await resetTestDatabase(test);
  world = await makeWorld(test.db);
  id = (await makeWorkspace(world, { owner: world.member })).id;
});
afterAll(() => test.drop());

const list = async () => (await refusals(world.member.ctx, { id })).refusals;

it("adds counts of one host and port, and shows the last reason and time", async () => {
  const pypi = { host: "pypi.org", port: 443 };
  await recordRefusals(test.db, id, [{ ...pypi, reason: "Not on the list." }], at(0));
  await recordRefusals(test.db, id, [{ host: "pypi.org", port: 80, reason }], at(1));
  await recordRefusals(
    test.db,
    id,
    [
      { ...pypi, reason, count: 3 },
      { ...pypi, reason },
    ],
    at(2),
  );
  expect(await list()).toEqual([
    { ...pypi, reason, count: 5, lastAt: at(2).toISOString() },
    { host: "pypi.org", port: 80, reason, count: 1, lastAt: at(1).toISOString() },
  ]);
});

it("keeps the newest refusals of each workspace alone", async () => {
  const other = (await makeWorkspace(world, { owner: world.colleague })).id;
  await recordRefusals(test.db, other, [{ host: "other.example", port: 1, reason }], at(0));
  await recordRefusals(test.db, id, [{ host: "oldest.example", port: 1, reason }], at(0));
  const many = Array.from({ length: MOST_REFUSALS - 1 }, (_, port) => ({ host: "many.example", port, reason }));
  await recordRefusals(test.db, id, many, at(1));
  expect((await list()).at(-1)).toMatchObject({ host: "oldest.example" });
  await recordRefusals(test.db, id, [{ host: "newest.example", port: 1, reason }], at(2));
  const kept = await list();
  expect(kept).toHaveLength(MOST_REFUSALS);
  expect(kept[0]).toMatchObject({ host: "newest.example" });
  expect(kept.map(({ host }) => host)).not.toContain("oldest.example");
  expect((await refusals(world.colleague.ctx, { id: other })).refusals).toHaveLength(1);
});

it("keeps no more of one call than a workspace may have", async () => {
  const many = Array.from({ length: 3 * MOST_REFUSALS }, (_, port) => ({ host: "many.example", port, reason }));
  await recordRefusals(test.db, id, many);
  expect(await list()).toHaveLength(MOST_REFUSALS);
});

it("stores text that a program made up", async () => {
  await recordRefusals(test.db, id, [{ host: `a\0b\ud800${"c".repeat(999)}`, port: 65_535, reason }], at(0));
  const [row] = await list();
  expect(row?.host).toHaveLength(253);
  expect(row?.host.startsWith("ab\ufffdc")).toBe(true);
});

it("ends with the workspace, and records nothing for a removed one", async () => {
  await recordRefusals(test.db, id, [{ host: "pypi.org", port: 443, reason }]);
  await remove(world.member.ctx, { id });
  await recordRefusals(test.db, id, [{ host: "pypi.org", port: 443, reason }]);
  await recordRefusals(test.db, "ws-none", [{ host: "pypi.org", port: 443, reason }]);
  expect(await test.db.select().from(egressRefusals)).toEqual([]);
});

it("goes with the workspace's row", async () => {
  await recordRefusals(test.db, id, [{ host: "pypi.org", port: 443, reason }]);
  await test.db.delete(workspaces).where(eq(workspaces.id, id));
  expect(await test.db.select().from(egressRefusals)).toEqual([]);
});

it("is hidden from other people", async () => {
  await expect(refusals(world.outsider.ctx, { id })).rejects.toMatchObject({ code: "not-found" });
});
