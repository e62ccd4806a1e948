import { afterAll, beforeAll, expect, it } from "vitest";
import type { Principal } from "#server/auth/principal.ts";
import { auditEvents } from "#server/db/schema/index.ts";
import { createTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { create as createToken } from "#server/services/access-token/create.ts";
import { list, listAll } from "#server/services/audit/list.ts";
import { makeWorld, type World } from "#server/services/testing.ts";
import { create } from "#server/services/workspace/create.ts";
import { stop } from "#server/services/workspace/stop.ts";

let test: TestDatabase;
let world: World;
beforeAll(async () => {
  test = await createTestDatabase();
  world = await makeWorld(test.db);
});
afterAll(() => test.drop());

it("tells who did what, newest first, page by page", async () => {
  const { id } = await create(world.member.ctx, { name: "audited", image: "cuda-python" });
  await stop(world.admin.ctx, { id });
  const all = await list(world.admin.ctx, { subject: id });
  expect(all.events).toMatchObject([
    { action: "workspace.stop", actorName: "Ada", subjectName: "audited", teamName: "vision" },
    { action: "workspace.create", actorName: "Max", subjectName: "audited" },
  ]);
  const first = await list(world.admin.ctx, { subject: id, limit: 1 });
  expect(first.events).toHaveLength(1);
  const second = await list(world.admin.ctx, { subject: id, limit: 1, before: first.next ?? 0 });
  expect(second).toMatchObject({ events: [{ action: "workspace.create" }], next: null });
});

it("filters by noun, and takes no wildcard from outside", async () => {
  expect((await list(world.admin.ctx, { action: "workspace." })).events.length).toBeGreaterThan(0);
  expect((await list(world.admin.ctx, { action: "%." })).events).toEqual([]);
});

it("finds by words of who and what, and by time", async () => {
  const { id } = await create(world.member.ctx, { name: "needle 100", image: "cuda-python" });
  const found = async (input: Parameters<typeof list>[1]) => {
    const { events } = await list(world.admin.ctx, { action: "workspace.create", ...input });
    return events.map((event) => event.subject);
  };
  expect(await found({ what: "Needle 100" })).toEqual([id]);
  for (const wildcard of ["needle%100", "need_e"]) expect(await found({ what: wildcard })).toEqual([]);
  expect(await found({ what: id })).toEqual([id]);
  expect(await found({ who: world.member.email.toUpperCase(), what: "needle" })).toEqual([id]);
  expect(await found({ who: "ada", what: "needle" })).toEqual([]);
  expect(await found({ who: "sluice", what: "needle" })).toEqual([]);
  const [hourAgo, soon] = [-1, 1].map((hours) => new Date(Date.now() + hours * 3600_000).toISOString());
  expect(await found({ what: "needle", from: hourAgo, to: soon })).toEqual([id]);
  expect(await found({ what: "needle", from: soon })).toEqual([]);
  expect(await found({ what: "needle", to: hourAgo })).toEqual([]);
});

it("tells admins where a request came from, and everybody by which token", async () => {
  const { token } = await createToken(world.member.ctx, { name: "nightly", days: 1 });
  const principal = { ...world.member.ctx.principal, tokenId: token.id } as Principal;
  const { id } = await create(
    { ...world.member.ctx, principal, address: "192.0.2.9" },
    { name: "from afar", image: "cuda-python" },
  );
  const asAdmin = await list(world.admin.ctx, { subject: id });
  expect(asAdmin.events).toMatchObject([{ address: "192.0.2.9", tokenName: "nightly" }]);
  const asLead = await list(world.lead.ctx, { subject: id, teamId: world.team });
  expect(asLead.events).toMatchObject([{ address: null, tokenName: "nightly" }]);
});

it("gives all that match, however many pages they are", async () => {
  await test.db.insert(auditEvents).values(
    Array.from({ length: 1203 }, (_, index) => ({
      ...{ actorKind: "system" as const, action: "lease.end", subject: `lea-${index}`, detail: {} },
    })),
  );
  const subjects = new Set<string | null>();
  for await (const event of listAll(world.admin.ctx, { action: "lease.end" })) subjects.add(event.subject);
  expect(subjects.size).toBe(1203);
});

it("shows a lead the own team only", async () => {
  const mine = await list(world.lead.ctx, { teamId: world.team });
  expect(new Set(mine.events.map((event) => event.teamId))).toEqual(new Set([world.team]));
  await expect(list(world.lead.ctx)).rejects.toMatchObject({ code: "forbidden" });
  await expect(list(world.lead.ctx, { teamId: world.otherTeam })).rejects.toMatchObject({ code: "forbidden" });
});

it("cannot be changed or emptied by anybody who is connected", async () => {
  await expect(test.sql`update audit_events set action = 'nothing'`).rejects.toThrow(/append-only/);
  await expect(test.sql`delete from audit_events`).rejects.toThrow(/append-only/);
  await expect(test.sql`truncate audit_events`).rejects.toThrow(/append-only/);
});
