/** Costs: the lines of a type sum to what it cost, to the cent, and a closed month stays as it is. */

import { eq, sql } from "drizzle-orm";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CostReport } from "#server/contracts/cost.ts";
import { deviceIntervals, leaseIntervals, leaseRequests, leases, teams } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { newId } from "#server/ids.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { closeMonth } from "./close-month.ts";
import { monthOf, monthSpan } from "./month.ts";
import { prices } from "./prices.ts";
import { removePrice } from "./remove-price.ts";
import { report } from "./report.ts";
import { rows } from "./rows.ts";
import { setPrice } from "./set-price.ts";
import { splitCents } from "./split.ts";
import { trend } from "./trend.ts";
import { waste, rowsOf as wasteRowsOf } from "./waste.ts";

let test: TestDatabase;
let world: World;
const thisMonth = monthOf(new Date());
const lastMonth = monthOf(new Date(monthSpan(thisMonth).from.getTime() - 1));
const { from, end } = monthSpan(lastMonth);
const hoursOfMonth = (end.getTime() - from.getTime()) / 3600_000;
const at = (hours: number) => new Date(from.getTime() + hours * 3600_000);

beforeAll(async () => {
  test = await useTestDatabase();
  world = await makeWorld(test.db);
  const [first, second] = world.gpuIds;
  await test.db.insert(deviceIntervals).values([
    { gpuId: first, state: "open", startedAt: at(-10), endedAt: null },
    { gpuId: second, state: "draining", startedAt: at(0), endedAt: at(7) },
    { gpuId: second, state: "lost", startedAt: at(7), endedAt: at(10) },
  ]);
  const workspaceId = (await makeWorkspace(world, { owner: world.member, name: "digits" })).id;
  const [id, requestId] = [newId("lea"), newId("req")];
  const owner = { kind: "process" as const, pid: 1, startTime: 1 };
  const shared = { workspaceId, teamId: world.team, userId: world.member.id, gpuType: "soft", milli: 333, owner };
  await test.db.insert(leaseRequests).values({
    ...{ ...shared, memoryBytes: 1, id: requestId, idempotencyKey: requestId, state: "granted" },
    ...{ lastPolledAt: at(-2), waitUntil: at(-2) },
  });
  await test.db.insert(leases).values({
    ...{ ...shared, memoryBytes: 1, id, requestId, gpuId: first, serverId: world.serverId, state: "ended", epoch: 1 },
    ...{ grantedAt: at(-2), ownerSeenAt: at(9), expiresAt: at(9), endedAt: at(9) },
  });
  const { teamId, userId, gpuType, milli } = shared;
  const interval = { leaseId: id, teamId, userId, gpuType, milli, gpuId: first };
  await test.db.insert(leaseIntervals).values({ ...interval, startedAt: at(-2), endedAt: at(9) });
});
afterAll(() => test.drop());

const sumOf = ({ lines }: CostReport) => lines.reduce((sum, line) => sum + (line.cents ?? 0), 0);

describe("a month's costs", () => {
  it("have hours but no amount without a price, and name the unpriced type", async () => {
    const all = await report(world.admin.ctx, { month: lastMonth });
    expect(all).toMatchObject({ types: [], unpriced: ["soft"], cents: 0 });
    expect(all.lines.map(({ what, cents }) => `${what} ${cents}`)).toEqual([
      ...["leased null", "free null", "draining null", "lost null"],
    ]);
    const [held] = (await rows(world.admin.ctx, { month: lastMonth })).rows;
    expect(held).toMatchObject({ name: "vision", cents: null });
    expect(held?.unpricedHours).toBeCloseTo(9 * 0.333);
    await expect(closeMonth(world.admin.ctx, { month: lastMonth })).rejects.toMatchObject({
      message: "Set a price for soft first: it was in the pool.",
    });
  });

  it("by the hour are the price of every hour, held or not", async () => {
    await setPrice(world.admin.ctx, { type: "soft", basis: "hour", amount: 2.15 });
    const all = await report(world.admin.ctx, { month: lastMonth });
    expect(all.types).toMatchObject([{ cents: Math.round(215 * (hoursOfMonth + 10)) }]);
    expect(sumOf(all)).toBe(all.cents);
    expect(
      all.lines.map(({ what, teamName, userName, workspaceName }) => [what, teamName, userName, workspaceName]),
    ).toEqual([
      ["leased", "vision", "Max", "digits"],
      ["free", null, null, null],
      ["draining", null, null, null],
      ["lost", null, null, null],
    ]);
    const [leased, , draining, lost] = all.lines;
    expect(leased?.hours).toBeCloseTo(9 * 0.333);
    expect(Math.abs((leased?.cents ?? 0) - 215 * 9 * 0.333)).toBeLessThanOrEqual(1);
    expect([draining?.hours, lost?.hours]).toEqual([7, 3]);
  });

  it("by the month are the hardware's cost, whatever the hours", async () => {
    await setPrice(world.admin.ctx, { type: "soft", basis: "month", amount: 9999.99 });
    const all = await report(world.admin.ctx, { month: lastMonth });
    expect([all.cents, sumOf(all)]).toEqual([999_999, 999_999]);
    const half = await report({ ...world.admin.ctx, now: () => at(hoursOfMonth / 2) }, { month: lastMonth });
    expect([half.cents, sumOf(half)]).toEqual([500_000, 500_000]);
  });

  it("are the own team's for a lead, and nobody's for a member", async () => {
    const own = await report(world.lead.ctx, { month: lastMonth, teamId: world.team });
    expect(own.lines.map((line) => line.what)).toEqual(["leased"]);
    expect(own.cents).toBe(sumOf(own));
    await expect(report(world.lead.ctx, { month: lastMonth })).rejects.toMatchObject({ code: "forbidden" });
    await expect(report(world.member.ctx, { teamId: world.team })).rejects.toMatchObject({ code: "forbidden" });
  });

  it("tell what was held and did nothing, in hours and at what an hour cost", async () => {
    await setPrice(world.admin.ctx, { type: "soft", basis: "hour", amount: 2.15 });
    for (const by of ["team", "person", "workspace"] as const) {
      const all = await waste(world.admin.ctx, { month: lastMonth, by });
      expect(all.rows).toMatchObject([{ name: { team: "vision", person: "Max", workspace: "digits" }[by] }]);
      // No GPU work was measured.
      expect(all.rows[0]?.hours).toBeCloseTo(9 * 0.333);
      expect(all.rows[0]?.held).toBeCloseTo(9 * 0.333);
      expect(Math.abs((all.rows[0]?.cents ?? 0) - 215 * 9 * 0.333)).toBeLessThanOrEqual(1);
      expect(all.parts.map(({ what }) => what)).toEqual(["idle", "free", "draining", "lost"]);
      const [idle, free, draining, lost] = all.parts.map(({ hours }) => hours);
      expect([draining, lost].map((hours) => Math.round(hours ?? 0))).toEqual([7, 3]);
      expect((idle ?? 0) + (free ?? 0) + 10).toBeCloseTo(all.hours);
      const { lines } = await report(world.admin.ctx, { month: lastMonth });
      expect(all.parts[1]?.cents).toBe(lines.find(({ what }) => what === "free")?.cents);
    }
    const own = await waste(world.lead.ctx, { month: lastMonth, teamId: world.team });
    expect(own.parts.map(({ what }) => what)).toEqual(["idle"]);
    await expect(waste(world.lead.ctx, { month: lastMonth })).rejects.toMatchObject({ code: "forbidden" });
  });

  it("name no money for what did nothing on a type without a price", () => {
    const whose = { teamId: "team-1", teamName: "vision", userId: null, workspaceId: null, userName: null };
    const unknown = { effective: 0, known: 0, estimated: 0 };
    const time = { ...whose, ...unknown, workspaceName: null, held: 10, borrowed: 0, promised: 0, delivered: 0 };
    const [row] = wasteRowsOf([{ ...time, gpuType: "a100", used: 4 }], "team", new Map());
    expect(row).toMatchObject({ held: 10, hours: 6, cents: null });
    const priced = [
      { ...time, gpuType: "a100", used: 4 },
      { ...time, gpuType: "h200", used: 9 },
    ];
    expect(wasteRowsOf(priced, "team", new Map([["h200", 250]]))).toMatchObject([{ hours: 7, cents: 250 }]);
  });

  it("are put together by who had it, and looked through a page at a time", async () => {
    const all = await rows(world.admin.ctx, { month: lastMonth, by: "person" });
    expect(all).toMatchObject({ total: all.rows.length, next: null });
    expect(all.rows.map((row) => row.name)).toEqual(["Max", "Free", "Draining", "Lost: server away"]);
    const paged: typeof all.rows = [];
    for (let after: string | undefined, more = true; more; ) {
      const page = await rows(world.admin.ctx, { month: lastMonth, by: "person", limit: 1, after });
      expect(page.total).toBe(all.total);
      paged.push(...page.rows);
      more = page.next !== null;
      after = page.next ?? undefined;
    }
    expect(paged).toEqual(all.rows);
    expect(await rows(world.admin.ctx, { month: lastMonth, by: "person", search: "max VISION" })).toMatchObject({
      ...{ total: 1, rows: [{ name: "Max", within: "vision" }] },
    });
    await expect(rows(world.lead.ctx, { month: lastMonth })).rejects.toMatchObject({ code: "forbidden" });
  });

  it("have prices that two people do not overwrite for one another", async () => {
    const price = { type: "soft", basis: "hour" as const, amount: 3 };
    const { prices: before } = await prices(world.admin.ctx);
    const version = before[0]?.version;
    await setPrice(world.admin.ctx, { ...price, version });
    await expect(setPrice(world.admin.ctx, { ...price, amount: 4, version })).rejects.toMatchObject({
      code: "conflict",
    });
    expect((await prices(world.admin.ctx)).prices[0]).toMatchObject({ amount: 3, version: (version ?? 0) + 1 });
  });

  it("have no price any more once it is removed, by an admin who has seen the latest one", async () => {
    const [before] = (await prices(world.admin.ctx)).prices;
    const type = "soft";
    await expect(removePrice(world.lead.ctx, { type })).rejects.toMatchObject({ code: "forbidden" });
    await expect(removePrice(world.admin.ctx, { type, version: 99 })).rejects.toMatchObject({ code: "conflict" });
    expect((await removePrice(world.admin.ctx, { type, version: before?.version })).prices).toEqual([]);
    await expect(removePrice(world.admin.ctx, { type })).rejects.toMatchObject({ message: "soft has no price." });
    await setPrice(world.admin.ctx, { type, basis: "hour", amount: 3 });
  });

  it("are listed by month from the first GPU on, for a lead those of the own team", async () => {
    const all = await trend(world.admin.ctx, { month: lastMonth });
    const asked = await report(world.admin.ctx, { month: lastMonth });
    // The first GPU joined ten hours before that month.
    expect(all.map(({ month }) => month)).toEqual([monthOf(at(-10)), lastMonth]);
    expect(all.at(-1)).toMatchObject({ cents: asked.cents, isClosed: false });
    const own = await report(world.lead.ctx, { month: lastMonth, teamId: world.team });
    expect((await trend(world.lead.ctx, { month: lastMonth, teamId: world.team })).at(-1)?.cents).toBe(own.cents);
    await expect(trend(world.lead.ctx, { month: lastMonth })).rejects.toMatchObject({ code: "forbidden" });
  });

  it("cannot be closed for a month before the first GPU", async () => {
    await expect(closeMonth(world.admin.ctx, { month: "2020-01" })).rejects.toMatchObject({
      message: expect.stringContaining("2020-01 has no costs to close") as string,
    });
  });

  it("stay as they were when the month was closed", async () => {
    await expect(closeMonth(world.admin.ctx, { month: thisMonth })).rejects.toMatchObject({ code: "conflict" });
    const closed = await closeMonth(world.admin.ctx, { month: lastMonth });
    expect(closed.closed?.by).toBe("Ada");
    await setPrice(world.admin.ctx, { type: "soft", basis: "hour", amount: 77 });
    await test.db.update(teams).set({ name: "renamed" }).where(eq(teams.id, world.team));
    await test.db.delete(leaseIntervals);
    expect(await report(world.admin.ctx, { month: lastMonth })).toEqual(closed);
    await expect(closeMonth(world.admin.ctx, { month: lastMonth })).rejects.toMatchObject({
      message: "This month is closed already.",
    });
    for (const statement of [
      sql`update cost_months set report = '{}'`,
      sql`delete from cost_months`,
      sql`truncate cost_months`,
    ]) {
      await expect(test.db.execute(statement)).rejects.toMatchObject({ cause: { code: "42501" } });
    }
  });
});

describe("splitting an amount", () => {
  it("loses no cent, and gives each its part to within one", () => {
    const weights = fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 40 });
    fc.assert(
      fc.property(fc.nat({ max: 100_000_000 }), weights, (total, each) => {
        const parts = splitCents(total, each);
        const all = each.reduce((sum, weight) => sum + weight, 0);
        expect(parts.reduce((sum, part) => sum + part, 0)).toBe(all > 0 ? total : 0);
        for (const [index, part] of parts.entries()) {
          expect(Math.abs(part - (all > 0 ? (total * (each[index] ?? 0)) / all : 0))).toBeLessThan(1.001);
        }
      }),
    );
  });
});
