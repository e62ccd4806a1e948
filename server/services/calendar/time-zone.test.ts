/** Calendars count their weeks by the clocks of the installation's zone, wherever they decide something. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { createTestDatabase, resetTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { resetEnv } from "#server/env.ts";
import { setKindWindows } from "#server/services/gpu-type/set-kind-windows.ts";
import { loadWorld } from "#server/services/lease/world.ts";
import { create } from "#server/services/reservation/create.ts";
import { setQuotaWindows } from "#server/services/team/set-quota-windows.ts";
import { makeWorld, type World } from "#server/services/testing.ts";
import { readPresent } from "#server/services/what-if/present.ts";
import { settingOf } from "#server/services/what-if/setting.ts";
import { list } from "./list.ts";

let test: TestDatabase;
let world: World;
beforeAll(() => inZone("Europe/Berlin"));
beforeAll(async () => {
  test = await createTestDatabase();
});
beforeEach(async () => {
  await resetTestDatabase(test);
  world = await makeWorld(test.db, { now: () => new Date("2027-01-04T12:00:00Z") });
});
afterAll(async () => {
  inZone(undefined);
  await test.drop();
});

function inZone(zone: string | undefined): void {
  if (zone === undefined) delete process.env.SLUICE_TIME_ZONE;
  else process.env.SLUICE_TIME_ZONE = zone;
  resetEnv();
}

/** Monday 9 to 17. */
const office = { fromMinute: 9 * 60, toMinute: 17 * 60 };
/** One in winter, one in summer: before the hours, when they begin, their last minute, and their end. */
const MONDAYS = [
  ...["2027-01-11T07:59:00Z", "2027-01-11T08:00:00Z", "2027-01-11T15:59:00Z", "2027-01-11T16:00:00Z"],
  ...["2027-07-12T06:59:00Z", "2027-07-12T07:00:00Z", "2027-07-12T14:59:00Z", "2027-07-12T15:00:00Z"],
];
const setOffice = (guaranteedMilli: number) =>
  setQuotaWindows(world.admin.ctx, {
    ...{ teamId: world.team, gpuType: "soft", windows: [{ ...office, guaranteedMilli, limitMilli: 2000 }] },
  });
const setBatch = () =>
  setKindWindows(world.admin.ctx, { gpuType: "soft", windows: [{ ...office, kind: "batch" as const }] });

it("a quota's hours, and those of a kind of work, are the same by these clocks in winter and in summer", async () => {
  await setOffice(1000);
  await setBatch();
  const seen = await Promise.all(MONDAYS.map((at) => loadWorld(world.db, "soft", new Date(at))));
  const inside = [false, true, true, false, false, true, true, false];
  expect(seen.map(({ quotas }) => quotas.get(world.team)?.guaranteedMilli === 1000)).toEqual(inside);
  expect(seen.map(({ open }) => open?.kinds.join() === "batch")).toEqual(inside);
  expect(seen[5]?.open?.nextAt).toBe(Date.parse("2027-07-12T15:00:00Z"));
});

it("what is read says by whose clocks its hours are", async () => {
  await setBatch();
  expect(await list(world.member.ctx)).toMatchObject({
    ...{ timeZone: "Europe/Berlin", calendars: [{ windows: [office] }] },
  });
});

it("a reservation beyond a change of the clocks is proved by those of its own time", async () => {
  await setOffice(1500);
  const reserve = (from: string, to: string) => {
    const amounts = { teamId: world.otherTeam, gpuType: "soft", amount: "1", unit: "0.5" };
    return create(world.admin.ctx, { ...amounts, startsAt: `${from}:00Z`, endsAt: `${to}:00Z` });
  };
  await expect(reserve("2027-07-12T05:00", "2027-07-12T07:30")).rejects.toMatchObject({
    ...{ code: "quota", detail: { at: "2027-07-12T07:00:00.000Z" } },
  });
  await expect(reserve("2027-07-12T05:00", "2027-07-12T07:00")).resolves.toBeDefined();
  await expect(reserve("2027-01-11T05:00", "2027-01-11T08:00")).resolves.toBeDefined();
});

it("what is played again changes its rules by the clocks of each time", async () => {
  await setOffice(1000);
  await setBatch();
  const [from, to] = [Date.parse("2027-03-22T12:00:00Z"), Date.parse("2027-04-05T12:00:00Z")];
  const [present] = await readPresent(world.system, ["soft"], { from, to });
  if (present === undefined) throw new Error("the type is there");
  const setting = settingOf("soft", present, { gpus: 2, quotas: new Map() }, from);
  const changes: string[] = [];
  for (let at: number | undefined = from; at !== undefined && at < to; at = setting.rulesChangeAt?.(at)) {
    const { open, quotas } = setting.rules(at);
    const guaranteed = quotas.get(world.team)?.guaranteedMilli;
    changes.push(`${new Date(at).toISOString().slice(0, 16)} ${open?.kinds.join()} ${guaranteed}`);
  }
  expect(changes).toEqual([
    "2027-03-22T12:00 batch 1000",
    "2027-03-22T16:00 interactive,batch 500",
    // The clocks are put forward.
    "2027-03-28T01:00 interactive,batch 500",
    "2027-03-29T07:00 batch 1000",
    "2027-03-29T15:00 interactive,batch 500",
    "2027-04-05T07:00 batch 1000",
  ]);
});
