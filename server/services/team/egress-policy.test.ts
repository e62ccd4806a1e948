import { desc, eq } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { auditEvents, teams } from "#server/db/schema/index.ts";
import { createTestDatabase, resetTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { makeWorld, type World } from "#server/services/testing.ts";
import { readEgressPolicy } from "./read-egress-policy.ts";
import { setEgressPolicy } from "./set-egress-policy.ts";

let test: TestDatabase;
let world: World;

beforeAll(async () => {
  test = await createTestDatabase();
});
beforeEach(async () => {
  await resetTestDatabase(test);
  world = await makeWorld(test.db);
});
afterAll(() => test.drop());

it("is open until an admin changes the policy, which the audit shows before and after", async () => {
  const before = { mode: "all", allow: [] };
  expect(await readEgressPolicy(world.member.ctx, { id: world.team })).toEqual({ ...before, version: 1 });
  const edit = { teamId: world.team, mode: "list" as const, allow: [" PyPI.org", "pypi.org", "10.1.0.0/16"] };
  const after = { mode: "list", allow: ["pypi.org", "10.1.0.0/16"] };
  expect(await setEgressPolicy(world.admin.ctx, { ...edit, version: 1 })).toEqual({ ...after, version: 2 });
  expect(await readEgressPolicy(world.member.ctx, { id: world.team })).toEqual({ ...after, version: 2 });
  const [row] = await test.db.select().from(teams).where(eq(teams.id, world.team));
  expect(row?.egressPolicy).toEqual(after);
  const [event] = await test.db.select().from(auditEvents).orderBy(desc(auditEvents.seq)).limit(1);
  expect(event).toMatchObject({ action: "team.set-egress-policy", teamId: world.team, detail: { before, after } });
});

it("is changed by admins alone, and read by the team alone", async () => {
  const edit = { teamId: world.team, mode: "none" as const, allow: [] };
  await expect(setEgressPolicy(world.lead.ctx, edit)).rejects.toMatchObject({ code: "forbidden" });
  await expect(readEgressPolicy(world.outsider.ctx, { id: world.team })).rejects.toMatchObject({ code: "forbidden" });
});

it("refuses an edit of a policy that changed meanwhile", async () => {
  const edit = { teamId: world.team, mode: "none" as const, allow: [], version: 1 };
  await setEgressPolicy(world.admin.ctx, edit);
  await expect(setEgressPolicy(world.admin.ctx, edit)).rejects.toMatchObject({ code: "conflict" });
});

it.each([
  "exa mple.org",
  "https://pypi.org",
  "10.0.0.0/33",
  "127.1",
  "0x7f000001",
  "*",
  "a..b",
  "pypi.org:443",
  "-x.org",
])("refuses %s as an entry", async (entry) => {
  const edit = { teamId: world.team, mode: "list" as const, allow: ["pypi.org", entry] };
  await expect(setEgressPolicy(world.admin.ctx, edit)).rejects.toMatchObject({ code: "invalid" });
});
