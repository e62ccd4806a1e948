import { and, eq } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  auditEvents,
  memberships,
  notices,
  users,
  workspaceCollaborators,
  workspaceVariables,
} from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { makePerson, makeWorkspace, makeWorld, type Person, type World } from "#server/services/testing.ts";
import { duplicate } from "#server/services/workspace/duplicate.ts";
import { get } from "#server/services/workspace/get.ts";
import { handover } from "#server/services/workspace/handover.ts";
import { list as listWorkspaces } from "#server/services/workspace/list.ts";
import { remove as removeWorkspace } from "#server/services/workspace/remove.ts";
import { restart } from "#server/services/workspace/restart.ts";
import { setIdleLimit } from "#server/services/workspace/set-idle-limit.ts";
import { start } from "#server/services/workspace/start.ts";
import { stop } from "#server/services/workspace/stop.ts";
import { list as listVariables } from "#server/services/workspace-variable/list.ts";
import { add } from "./add.ts";
import { list } from "./list.ts";
import { readLink } from "./read-link.ts";
import { remove } from "./remove.ts";

let test: TestDatabase;
let world: World;
let owner: Person;
/** Of another team. */
let guest: Person;
let id: string;

beforeAll(async () => {
  test = await useTestDatabase();
  world = await makeWorld(test.db);
  owner = world.member;
  guest = world.outsider;
});
afterAll(() => test.drop());
beforeEach(async () => {
  ({ id } = await makeWorkspace(world, { owner }));
});

const invite = (role: "viewer" | "editor", person = guest.email) => add(owner.ctx, { id, person, role });
const forbidden = { code: "forbidden" };
const hidden = { code: "not-found" };

describe("inviting", () => {
  it("finds people by e-mail however it is written, and by a name that only one person has", async () => {
    expect((await invite("viewer", guest.email.toUpperCase())).collaborators).toMatchObject([
      { userId: guest.id, name: guest.name, role: "viewer" },
    ]);
    expect((await invite("editor", "oto")).collaborators).toMatchObject([{ userId: guest.id, role: "editor" }]);
    await expect(invite("viewer", "nobody@example.org")).rejects.toMatchObject(hidden);
    const [one, two] = [await makePerson(test.db, { name: "Sam" }), await makePerson(test.db, { name: "Sam" })];
    await expect(invite("viewer", "sam")).rejects.toMatchObject({ code: "conflict" });
    await invite("viewer", two.email);
    expect((await list(owner.ctx, { id })).collaborators.map((each) => each.userId)).not.toContain(one.id);
    await expect(invite("viewer", owner.email)).rejects.toMatchObject({ code: "conflict" });
  });

  it("finds nobody whose account is disabled", async () => {
    const gone = await makePerson(test.db, { name: "Gone" });
    await test.db.update(users).set({ disabledAt: new Date() }).where(eq(users.id, gone.id));
    await expect(invite("viewer", gone.email)).rejects.toMatchObject(hidden);
  });

  it("is the owner's alone: an editor invites nobody, nor does a lead or an admin", async () => {
    await invite("editor");
    const person = world.colleague.email;
    for (const other of [guest, world.lead, world.admin]) {
      await expect(add(other.ctx, { id, person, role: "viewer" })).rejects.toMatchObject(forbidden);
    }
    await expect(add(world.colleague.ctx, { id, person, role: "editor" })).rejects.toMatchObject(hidden);
  });

  it("tells whoever is invited, once for each role, and takes it back with the invitation", async () => {
    await invite("viewer");
    await invite("editor");
    const told = () =>
      test.db
        .select({ title: notices.title, href: notices.href })
        .from(notices)
        .where(and(eq(notices.userId, guest.id), eq(notices.href, `/workspaces/${id}`)));
    expect(await told()).toMatchObject([{ title: `Max invited you to ${id} as an editor` }]);
    await remove(owner.ctx, { id, userId: guest.id });
    expect(await told()).toEqual([]);
  });

  it("is written down with whom and as what, and so is who opens it", async () => {
    await invite("viewer");
    await handover(guest.ctx, { id });
    await remove(owner.ctx, { id, userId: guest.id });
    const events = await test.db.select().from(auditEvents).where(eq(auditEvents.subject, id)).orderBy(auditEvents.seq);
    expect(events.map(({ action, actorId, detail }) => ({ action, actorId, detail }))).toEqual([
      { action: "workspace.add-collaborator", actorId: owner.id, detail: { userId: guest.id, role: "viewer" } },
      { action: "workspace.open", actorId: guest.id, detail: { as: "viewer" } },
      { action: "workspace.remove-collaborator", actorId: owner.id, detail: { userId: guest.id, role: "viewer" } },
    ]);
  });
});

describe("a viewer", () => {
  beforeEach(() => invite("viewer"));

  it("sees and opens it, and finds it among those shared", async () => {
    expect(await get(guest.ctx, { id })).toMatchObject({
      role: "viewer",
      can: { open: true, start: false, stop: false, restart: false, work: false, change: false, remove: false },
    });
    expect((await handover(guest.ctx, { id })).url).toContain(id);
    expect((await listWorkspaces(guest.ctx, { scope: "shared" })).workspaces.map((each) => each.id)).toContain(id);
    expect((await listWorkspaces(guest.ctx, { scope: "all" })).workspaces.map((each) => each.id)).toContain(id);
    expect((await listWorkspaces(guest.ctx, { scope: "mine" })).workspaces.map((each) => each.id)).not.toContain(id);
  });

  it("finds it once, also as a lead or an admin who sees all workspaces of the team", async () => {
    for (const person of [world.lead, world.admin]) {
      const idsIn = async (scope: "shared" | "others" | "all") =>
        (await listWorkspaces(person.ctx, { scope, limit: 100 })).workspaces.filter((each) => each.id === id).length;
      expect([await idsIn("shared"), await idsIn("others"), await idsIn("all")]).toEqual([0, 1, 1]);
      await invite("viewer", person.email);
      expect([await idsIn("shared"), await idsIn("others"), await idsIn("all")]).toEqual([1, 0, 1]);
    }
  });

  it("does nothing else", async () => {
    await expect(stop(guest.ctx, { id })).rejects.toMatchObject(forbidden);
    await expect(restart(guest.ctx, { id })).rejects.toMatchObject(forbidden);
    await expect(setIdleLimit(guest.ctx, { id, idleSeconds: 3600 })).rejects.toMatchObject(forbidden);
    await expect(listVariables(guest.ctx, { id })).rejects.toMatchObject(forbidden);
    await expect(duplicate(guest.ctx, { id, name: "mine" })).rejects.toMatchObject(forbidden);
    await expect(removeWorkspace(guest.ctx, { id })).rejects.toMatchObject(forbidden);
  });

  it("does not open it with a token, only from a browser session", async () => {
    const { principal } = guest.ctx;
    if (principal.kind !== "user") throw new Error("not a person");
    const byToken = { ...guest.ctx, principal: { ...principal, sessionId: undefined, tokenId: "pat" } };
    await expect(handover(byToken, { id })).rejects.toMatchObject(forbidden);
  });
});

describe("an editor", () => {
  beforeEach(() => invite("editor"));

  it("stops, starts and restarts it, in the owner's name and team", async () => {
    expect((await stop(guest.ctx, { id })).owner.id).toBe(owner.id);
    expect(await start(guest.ctx, { id })).toMatchObject({ owner: { id: owner.id }, team: { id: world.team } });
    await restart(guest.ctx, { id });
  });

  it("neither sees secrets, nor copies, shares, sets up or removes it", async () => {
    const secret = { workspaceId: id, name: "KEY", secret: true, sealed: "x", updatedAt: new Date() };
    await test.db.insert(workspaceVariables).values(secret);
    await expect(listVariables(guest.ctx, { id })).rejects.toMatchObject(forbidden);
    await expect(duplicate(guest.ctx, { id, name: "mine" })).rejects.toMatchObject(forbidden);
    await expect(setIdleLimit(guest.ctx, { id, idleSeconds: 3600 })).rejects.toMatchObject(forbidden);
    await expect(removeWorkspace(guest.ctx, { id })).rejects.toMatchObject(forbidden);
  });
});

describe("what was given ends", () => {
  beforeEach(() => invite("editor"));
  const left = () => get(guest.ctx, { id });

  it("when the owner, a lead or an admin takes them out, or they leave", async () => {
    for (const by of [owner, world.lead, world.admin, guest]) {
      await invite("editor");
      await remove(by.ctx, { id, userId: guest.id });
      await expect(left()).rejects.toMatchObject(hidden);
    }
    await expect(remove(owner.ctx, { id, userId: guest.id })).rejects.toMatchObject(hidden);
  });

  it("but no collaborator takes out another", async () => {
    await add(owner.ctx, { id, person: world.colleague.email, role: "viewer" });
    await expect(remove(guest.ctx, { id, userId: world.colleague.id })).rejects.toMatchObject(forbidden);
    expect(
      await test.db.select().from(workspaceCollaborators).where(eq(workspaceCollaborators.workspaceId, id)),
    ).toHaveLength(2);
  });

  it("when the owner leaves the team or is disabled: nobody else works on its quota", async () => {
    const member = and(eq(memberships.userId, owner.id), eq(memberships.teamId, world.team));
    await test.db.delete(memberships).where(member);
    await expect(left()).rejects.toMatchObject(hidden);
    await expect(start(guest.ctx, { id })).rejects.toMatchObject(hidden);
    expect((await listWorkspaces(guest.ctx, { scope: "shared" })).workspaces).toEqual([]);
    await test.db.insert(memberships).values({ teamId: world.team, userId: owner.id, role: "member" });
    await test.db.update(users).set({ disabledAt: new Date() }).where(eq(users.id, owner.id));
    await expect(left()).rejects.toMatchObject(hidden);
    await test.db.update(users).set({ disabledAt: null }).where(eq(users.id, owner.id));
    expect((await left()).role).toBe("editor");
  });
});

describe("the link", () => {
  it("lets in who was invited, and tells others whom to ask and nothing else", async () => {
    const owned = { name: owner.name, email: owner.email };
    expect(await readLink(guest.ctx, { id })).toEqual({ owner: owned, invited: false });
    await invite("viewer");
    expect(await readLink(guest.ctx, { id })).toEqual({ owner: owned, invited: true });
    expect((await list(guest.ctx, { id })).link).toMatch(new RegExp(`/shared/${id}$`));
    const nobody = { ...guest.ctx, principal: { kind: "anonymous" as const } };
    await expect(readLink(nobody, { id })).rejects.toMatchObject({ code: "unauthenticated" });
  });
});
