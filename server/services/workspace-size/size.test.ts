import { availableParallelism } from "node:os";
import { and, desc, eq } from "drizzle-orm";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ChosenSize } from "#server/contracts/workspace-size.ts";
import { auditEvents, workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import { setPolicy as setTeamPolicy } from "#server/services/team/set-policy.ts";
import { makeWorld, type Person, type World } from "#server/services/testing.ts";
import { create } from "#server/services/workspace/create.ts";
import { duplicate } from "#server/services/workspace/duplicate.ts";
import { get } from "#server/services/workspace/get.ts";
import { lastLaunch } from "#server/services/workspace/last-launch.ts";
import { setSize } from "#server/services/workspace/set-size.ts";
import { add } from "./add.ts";
import { edit } from "./edit.ts";
import { list } from "./list.ts";
import { remove } from "./remove.ts";
import { setPolicy } from "./set-policy.ts";

const GIB = 2 ** 30;
let test: TestDatabase;
let world: World;
let count = 0;

beforeAll(async () => {
  // A launcher that knows no bound, so that the machine decides about nothing.
  launchers("kubernetes");
  test = await useTestDatabase();
  world = await makeWorld(test.db);
});
afterAll(async () => {
  launchers(undefined);
  await test.drop();
});

function launchers(names: string | undefined): void {
  if (names === undefined) delete process.env.SLUICE_LAUNCHERS;
  else process.env.SLUICE_LAUNCHERS = names;
  resetEnv();
}

const launch = (person: Person, size?: ChosenSize) =>
  create(person.ctx, { name: `w${++count}`, image: "cuda-python", ...(size !== undefined && { size }) });
const found = async (name: string) => {
  const size = (await list(world.admin.ctx)).sizes.find((each) => each.name === name);
  if (size === undefined) throw new Error(`no size ${name}`);
  return size;
};

/** What an edit of it sends. */
const editable = async (name: string) => {
  const { workspaces: uses, ...size } = await found(name);
  expect(uses).not.toBeNull();
  return size;
};

describe("a launch", () => {
  it("gets the default size when it names none, and one that it names in whatever case", async () => {
    expect((await launch(world.member)).size).toEqual({
      ...{ name: "Medium", cpuMilli: 2000, memoryBytes: 4 * GIB },
      runsWith: null,
    });
    expect((await launch(world.member, "small")).size).toMatchObject({ name: "Small", cpuMilli: 1000 });
    expect((await lastLaunch(world.member.ctx))?.size).toBe("Small");
  });

  it("is refused with numbers to whoever may not choose them, and told what to do; a lead may, up to the bound", async () => {
    const own = { cpuMilli: 3000, memoryBytes: 3 * GIB };
    await expect(launch(world.member, own)).rejects.toMatchObject({
      code: "forbidden",
      message:
        "size: In the team vision only leads and admins choose cores and memory freely. Choose one of: Small (1 core and 2 GiB), Medium (2 cores and 4 GiB), Large (4 cores and 8 GiB). For another one ask a team lead.",
    });
    expect((await launch(world.lead, own)).size).toEqual({ name: null, ...own, runsWith: null });
    await expect(launch(world.lead, { ...own, cpuMilli: 8100 })).rejects.toMatchObject({ code: "refused" });
  });

  it("with the numbers of a size that is offered has that size", async () => {
    expect((await launch(world.member, { cpuMilli: 4000, memoryBytes: 8 * GIB })).size?.name).toBe("Large");
  });

  it("follows the policy of its team before the installation's", async () => {
    const policy = { teamId: world.team, maxLeaseSeconds: null, idleSeconds: null, coTenancy: "any" } as const;
    await setTeamPolicy(world.admin.ctx, { ...policy, customSizes: "everybody", maxCpuMilli: 3000 });
    expect((await launch(world.member, { cpuMilli: 3000, memoryBytes: GIB })).size?.name).toBeNull();
    await expect(launch(world.member, { cpuMilli: 3100, memoryBytes: GIB })).rejects.toThrow(
      "3 cores and 32 GiB at most",
    );
    await setTeamPolicy(world.admin.ctx, policy);
    await setPolicy(world.admin.ctx, { customSizes: "nobody", maxCpuMilli: 8000, maxMemoryBytes: 32 * GIB });
    await expect(launch(world.lead, { cpuMilli: 3000, memoryBytes: GIB })).rejects.toThrow("ask an admin");
    await setPolicy(world.admin.ctx, { customSizes: "leads", maxCpuMilli: 8000, maxMemoryBytes: 32 * GIB, version: 1 });
  });

  it("takes no more than its launcher can give", async () => {
    launchers("local");
    const cpuMilli = (availableParallelism() + 1) * 1000;
    await add(world.admin.ctx, { name: "Beyond", cpuMilli, memoryBytes: GIB });
    await expect(launch(world.member, "Beyond")).rejects.toMatchObject({ code: "refused" });
    const { launchers: known } = await list(world.member.ctx);
    expect(known).toMatchObject([{ launcher: "local", maxCpuMilli: cpuMilli - 1000 }]);
    launchers("kubernetes");
    await remove(world.admin.ctx, { id: (await found("Beyond")).id });
  });
});

describe("a size", () => {
  it("that is changed is had by its workspaces from their next start on", async () => {
    const { id } = await launch(world.member, "Small");
    const running = { observed: "running", givenCpuMilli: 1000, givenMemoryBytes: 2 * GIB } as const;
    await test.db.update(workspaces).set(running).where(eq(workspaces.id, id));
    const { workspaces: uses, ...small } = await found("Small");
    expect(uses).toBe(2);
    await edit(world.admin.ctx, { ...small, cpuMilli: 1500 });
    expect((await get(world.member.ctx, { id })).size).toEqual({
      ...{ name: "Small", cpuMilli: 1500, memoryBytes: 2 * GIB },
      runsWith: { cpuMilli: 1000, memoryBytes: 2 * GIB },
    });
    await expect(edit(world.admin.ctx, small)).rejects.toMatchObject({ code: "conflict" });
  });

  it("that is removed leaves its numbers; the default one stays", async () => {
    await add(world.admin.ctx, { name: "Brief", cpuMilli: 700, memoryBytes: GIB });
    const { id } = await launch(world.member, "Brief");
    await remove(world.admin.ctx, { id: (await found("Brief")).id });
    expect((await get(world.member.ctx, { id })).size).toMatchObject({ name: null, cpuMilli: 700 });
    await expect(remove(world.admin.ctx, { id: (await found("Medium")).id })).rejects.toMatchObject({
      code: "conflict",
    });
    await expect(duplicate(world.member.ctx, { id, name: "again" })).rejects.toMatchObject({ code: "forbidden" });
  });

  it("of some teams is offered and launched there alone", async () => {
    await add(world.admin.ctx, { name: "Theirs", cpuMilli: 900, memoryBytes: GIB, teamIds: [world.otherTeam] });
    const offered = async ({ ctx }: Person) => (await list(ctx)).sizes.map(({ name }) => name);
    expect(await offered(world.outsider)).toContain("Theirs");
    expect(await offered(world.member)).not.toContain("Theirs");
    await expect(launch(world.member, "Theirs")).rejects.toMatchObject({ code: "not-found" });
    const teamIds = [world.otherTeam, world.team];
    await add(world.admin.ctx, { name: "Both", cpuMilli: 800, memoryBytes: GIB, teamIds });
    const shown = async ({ ctx }: Person) => (await list(ctx)).sizes.find(({ name }) => name === "Both")?.teamIds;
    expect(await shown(world.member)).toEqual([world.team]);
    expect(await shown(world.admin)).toEqual(teamIds);
  });

  it("is not made the default while somebody else makes another one it", async () => {
    const small = await editable("Small");
    const large = await found("Large");
    let saved: Promise<unknown> | undefined;
    await test.sql.begin(async (other) => {
      await other`update workspace_sizes set is_default = false where is_default`;
      await other`update workspace_sizes set is_default = true where id = ${large.id}`;
      saved = edit(world.admin.ctx, { ...small, isDefault: true }).catch((error: unknown) => error);
      const waiting = async () =>
        (await test.sql`select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`)
          .length;
      await expect.poll(waiting).toBeGreaterThan(0);
    });
    expect(await saved).toMatchObject({ code: "conflict", message: expect.stringContaining("the default") as string });
    await edit(world.admin.ctx, { ...(await editable("Medium")), isDefault: true });
  });

  it("of a workspace is changed by the rules of a launch, and audited", async () => {
    const { id } = await launch(world.member, "Small");
    await expect(setSize(world.member.ctx, { id, size: { cpuMilli: 2500, memoryBytes: GIB } })).rejects.toMatchObject({
      code: "forbidden",
    });
    expect((await setSize(world.member.ctx, { id, size: "Large" })).size).toMatchObject({ name: "Large" });
    const [event] = await test.db
      .select()
      .from(auditEvents)
      .where(and(eq(auditEvents.subject, id), eq(auditEvents.action, "workspace.set-size")))
      .orderBy(desc(auditEvents.at));
    expect(event?.detail).toMatchObject({ before: { sizeCpuMilli: 1500 }, after: { sizeCpuMilli: 4000 } });
  });
});
