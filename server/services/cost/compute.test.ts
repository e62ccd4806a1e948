/** Costs of random months: every table tells the same to the cent, from the ledger and from what is rolled up. */
import { sql } from "drizzle-orm";
import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import { systemContext } from "#server/context.ts";
import type { CostLine, CostReport } from "#server/contracts/cost.ts";
import {
  deviceIntervals,
  gpuPrices,
  leaseIntervals,
  leaseRequests,
  leases,
  usageDays,
  usageRollup,
  usageTeamDays,
} from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { newId } from "#server/ids.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { rollUp } from "#server/services/utilisation/roll-up.ts";
import { compute } from "./compute.ts";
import { monthOf, monthSpan } from "./month.ts";

const HOUR = 3600_000;
const month = monthOf(new Date(monthSpan(monthOf(new Date())).from.getTime() - 1));
const { from, end } = monthSpan(month);
const MINUTES = (end.getTime() - from.getTime()) / 60_000;
const at = (minute: number) => new Date(from.getTime() + minute * 60_000);

let test: TestDatabase;
let world: World;
let workspaces: { id: string; teamId: string; userId: string }[];

beforeAll(async () => {
  test = await useTestDatabase();
  world = await makeWorld(test.db);
  const people = [
    { owner: world.member, teamId: world.team },
    { owner: world.lead, teamId: world.team },
    { owner: world.outsider, teamId: world.otherTeam },
  ];
  workspaces = [];
  for (const { owner, teamId } of [...people, ...people]) {
    const { id } = await makeWorkspace(world, { owner, teamId, name: `ws-${workspaces.length}` });
    workspaces.push({ id, teamId, userId: owner.id });
  }
  await test.db.insert(gpuPrices).values({ gpuType: "soft", basis: "hour", micro: 1_000_000, changedAt: from });
});
afterAll(() => test.drop());

type Lease = { whose: number; gpu: number; milli: number; from: number; to: number };
const minute = fc.integer({ min: 0, max: MINUTES });
const history = fc.record({
  /** Millionths of the currency's unit, and whether an hour's or the month's. */
  micro: fc.integer({ min: 0, max: 9_999_999 }),
  basis: fc.constantFrom("hour" as const, "month" as const),
  /** When the second device goes away. */
  away: minute,
  leases: fc.array(
    fc.record({
      ...{ whose: fc.integer({ min: 0, max: 5 }), gpu: fc.integer({ min: 0, max: 1 }) },
      ...{ milli: fc.integer({ min: 1, max: 1000 }), from: minute, to: minute },
    }),
    { maxLength: 14 },
  ),
});

async function write(lease: Lease): Promise<void> {
  if (lease.from >= lease.to) return;
  const { id: workspaceId, teamId, userId } = workspaces[lease.whose] ?? { id: "", teamId: "", userId: "" };
  const [id, requestId] = [newId("lea"), newId("req")];
  const [begins, ends] = [at(lease.from), at(lease.to)];
  const owner = { kind: "process" as const, pid: 1, startTime: 1 };
  const gpuId = world.gpuIds[lease.gpu] ?? "";
  const held = { teamId, userId, gpuType: "soft", milli: lease.milli };
  const shared = { ...held, workspaceId };
  await test.db.insert(leaseRequests).values({
    ...{ ...shared, owner, memoryBytes: 1, id: requestId, idempotencyKey: requestId, state: "granted" },
    ...{ createdAt: begins, decidedAt: begins, lastPolledAt: begins, waitUntil: begins },
  });
  await test.db.insert(leases).values({
    ...{ ...shared, owner, memoryBytes: 1, id, requestId, gpuId, serverId: world.serverId, state: "ended", epoch: 1 },
    ...{ grantedAt: begins, ownerSeenAt: ends, expiresAt: ends, endedAt: ends },
  });
  await test.db.insert(leaseIntervals).values({ ...held, leaseId: id, gpuId, startedAt: begins, endedAt: ends });
}

/** Time and cents of each, of lines as they are. */
function sums({ lines }: CostReport, key: (line: CostLine) => string): Record<string, [hours: number, cents: number]> {
  const found: Record<string, [number, number]> = {};
  for (const line of lines) {
    const [hours, cents] = found[key(line)] ?? [0, 0];
    found[key(line)] = [hours + line.hours, cents + (line.cents ?? 0)];
  }
  return Object.fromEntries(Object.entries(found).map(([each, [hours, cents]]) => [each, [nearly(hours), cents]]));
}
const nearly = (hours: number) => Math.round(hours * 1e6) / 1e6;
const teamOf = (line: CostLine) => line.teamId ?? line.what;
const personOf = (line: CostLine) => `${line.userId ?? line.what} ${line.teamId}`;

const rolledTo = (to: Date) => test.db.update(usageRollup).set({ rolledTo: to });

it("are the same by team, person and workspace, and however much is rolled up", async () => {
  await fc.assert(
    fc.asyncProperty(history, minute, async ({ micro, basis, away, leases: all }, half) => {
      await test.db.execute(
        sql`truncate lease_requests, device_intervals, usage_hours, usage_team_hours, usage_days, usage_team_days, usage_weeks, pool_hours, wait_days cascade`,
      );
      await rolledTo(new Date(Math.floor(Date.now() / HOUR) * HOUR));
      await test.db.update(gpuPrices).set({ micro, basis });
      const [first, second] = world.gpuIds;
      await test.db
        .insert(deviceIntervals)
        .values([
          { gpuId: first, state: "open", startedAt: from, endedAt: end },
          ...(away > 0 ? [{ gpuId: second, state: "open" as const, startedAt: from, endedAt: at(away) }] : []),
          ...(away < MINUTES ? [{ gpuId: second, state: "lost" as const, startedAt: at(away), endedAt: end }] : []),
        ]);
      for (const lease of all) await write(lease);
      const ask = async () => {
        const ctx = systemContext(test.db);
        const [team, person, workspace] = await Promise.all([
          compute(ctx, month, "team"),
          compute(ctx, month, "person"),
          compute(ctx, month, "workspace"),
        ]);
        for (const { types, lines } of [team, person, workspace]) {
          expect(types).toEqual(workspace.types);
          expect(lines.reduce((sum, line) => sum + (line.cents ?? 0), 0)).toBe(workspace.cents);
        }
        expect(sums(person, teamOf)).toEqual(sums(team, teamOf));
        expect(sums(workspace, teamOf)).toEqual(sums(team, teamOf));
        expect(sums(workspace, personOf)).toEqual(sums(person, personOf));
        return { team, person, workspace };
      };
      // Written into the past, so the mark stands before it: all of this is from the ledger.
      const fromLedger = await ask();
      for (const now of [at(half), new Date()]) {
        while (await rollUp(systemContext(test.db, { now: () => now })));
        expect(await ask()).toEqual(fromLedger);
      }
      const made = await test.db.select().from(usageTeamDays);
      const byHand = await test.db.execute<{ sums: string[] }>(sql`
        select array[at::text, gpu_type, team_id, state, sum(held)::text, sum(used)::text, sum(borrowed)::text,
          sum(promised)::text, sum(delivered)::text] as sums
        from ${usageDays} group by at, gpu_type, team_id, state`);
      expect(made).toHaveLength(byHand.length);
      const wanted = byHand.map((row) => row.sums.slice(1).join()).sort();
      const textOf = (row: (typeof made)[number]) =>
        [row.gpuType, row.teamId, row.state, row.held, row.used, row.borrowed, row.promised, row.delivered].join();
      expect(made.map(textOf).sort()).toEqual(wanted);
    }),
    { numRuns: 6 },
  );
});
