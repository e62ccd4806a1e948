import { asc } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { reservations } from "#server/db/schema/index.ts";
import { createTestDatabase, resetTestDatabase, type TestDatabase } from "#server/db/testing.ts";
import { list as listAudit } from "#server/services/audit/list.ts";
import { setQuota } from "#server/services/team/set-quota.ts";
import { makeWorld, type World } from "#server/services/testing.ts";
import { create } from "./create.ts";
import { list } from "./list.ts";
import { preview } from "./preview.ts";
import { remove } from "./remove.ts";

let test: TestDatabase;
let world: World;
beforeAll(async () => {
  test = await createTestDatabase();
});
beforeEach(async () => {
  await resetTestDatabase(test);
  world = await makeWorld(test.db, { now: () => new Date("2027-03-01T12:00:00Z") });
});
afterAll(() => test.drop());

const code = (promise: Promise<unknown>) =>
  promise.then(
    () => "done",
    (error: { code?: string }) => error.code,
  );
/** Tuesdays from 10 to 12 in Berlin, whose clocks change on 28 March. */
const lesson = (amount = "1") => ({
  ...{ teamId: world.team, gpuType: "soft", amount, unit: "0.5" },
  ...{ startsAt: "2027-03-16T09:00:00Z", endsAt: "2027-03-16T11:00:00Z" },
  repeat: { until: "2027-04-06", timeZone: "Europe/Berlin" },
});
const DAYS = ["2027-03-16T09", "2027-03-23T09", "2027-03-30T08", "2027-04-06T08"];
const kept = async () =>
  (await world.db.select().from(reservations).orderBy(asc(reservations.startsAt))).map(({ startsAt }) =>
    startsAt.toISOString().slice(0, 13),
  );
const audited = async (action: string) => (await listAudit(world.admin.ctx, { action, limit: 9 })).events;

it("a series is reserved at once: rows of their own, at the same times of day, on record as one", async () => {
  const made = await create(world.admin.ctx, lesson());
  expect([made, ...made.following].map(({ startsAt }) => startsAt.slice(0, 13))).toEqual(DAYS);
  expect(await kept()).toEqual(DAYS);
  const { reservations: seen } = await list(world.member.ctx);
  expect(new Set(seen.map(({ seriesId }) => seriesId))).toEqual(new Set([made.id]));
  expect(seen.map(({ milli, endsAt }) => [milli, endsAt.slice(11, 13)])).toEqual([
    ...["11", "11", "10", "10"].map((hour) => [1000, hour]),
  ]);
  expect(await audited("reservation.create")).toMatchObject([
    { subject: made.id, detail: { count: 4, repeat: { until: "2027-04-06", timeZone: "Europe/Berlin" } } },
  ]);
  const alone = { startsAt: "2027-05-04T08:00:00Z", endsAt: "2027-05-04T10:00:00Z", repeat: undefined };
  expect(await create(world.admin.ctx, { ...lesson(), ...alone })).toMatchObject({ seriesId: null, following: [] });
});

it("a series that does not fit in one week is refused whole, and the refusal names when", async () => {
  const other = { ...lesson(), startsAt: "2027-03-30T09:00:00Z", endsAt: "2027-03-30T10:00:00Z", repeat: undefined };
  const { id } = await create(world.admin.ctx, { ...other, teamId: world.otherTeam, amount: "0.5" });
  await expect(create(world.admin.ctx, lesson())).rejects.toMatchObject({
    ...{ code: "quota", detail: { at: "2027-03-30T09:00:00.000Z" } },
    message: expect.stringContaining("has no place at 2027-03-30 09:00 UTC") as string,
  });
  expect(await kept()).toEqual(["2027-03-30T09"]);
  expect(await audited("reservation.create")).toHaveLength(1);
  expect(await preview(world.admin.ctx, lesson())).toMatchObject({
    ...{ count: 0, displaced: [], at: "2027-03-30T09:00:00.000Z" },
    refusal: expect.stringContaining("2027-03-30 09:00 UTC") as string,
  });
  await remove(world.admin.ctx, { id });
  expect(await preview(world.admin.ctx, lesson())).toMatchObject({ refusal: null, count: 4, displaced: [] });
  expect(await kept()).toEqual([]);
});

it("a series for one member keeps their ceiling in every week", async () => {
  const quota = { guaranteedMilli: 500, limitMilli: 1000, personMilli: 500 };
  await setQuota(world.admin.ctx, { teamId: world.team, gpuType: "soft", ...quota });
  const own = { ...lesson("0.5"), userId: world.member.id };
  const beside = { ...own, amount: "0.25", startsAt: "2027-03-30T09:30:00Z", endsAt: "2027-03-30T12:00:00Z" };
  await create(world.admin.ctx, { ...beside, repeat: undefined });
  await expect(create(world.admin.ctx, own)).rejects.toThrow("more reserved at 2027-03-30 08:00 UTC");
  expect(await code(create(world.admin.ctx, { ...own, amount: "0.25" }))).toBe("done");
});

it("of a series one is given up alone, or with all that follow", async () => {
  const { ctx } = world.lead;
  const made = await create(world.admin.ctx, lesson("0.5"));
  const [first, second = "", third = "", fourth = ""] = [made.id, ...made.following.map(({ id }) => id)];
  const other = await create(world.admin.ctx, lesson("0.25"));
  for (const person of [world.member, world.outsider])
    expect(await code(remove(person.ctx, { id: second, following: "true" }))).toBe("forbidden");
  const left = async () => {
    const { reservations: seen } = await list(ctx);
    return seen.filter(({ seriesId }) => seriesId !== other.id).map(({ id }) => id);
  };
  await remove(ctx, { id: first });
  expect(await left()).toEqual([second, third, fourth]);
  await remove(ctx, { id: third, following: "true" });
  expect(await left()).toEqual([second]);
  expect((await list(ctx)).reservations).toHaveLength(5);
  expect(await code(remove(ctx, { id: fourth, following: "true" }))).not.toBe("done");
  expect(await audited("reservation.remove")).toMatchObject([
    { subject: third, detail: { before: { id: third }, following: [{ id: fourth }] } },
    { subject: first, detail: { before: { id: first } } },
  ]);
  const { id } = await create(world.admin.ctx, { ...lesson("0.25"), repeat: undefined });
  await remove(ctx, { id, following: "true" });
  expect((await list(ctx)).reservations).toHaveLength(5);
});

it("only an admin reserves, in a zone that is known and not too far ahead", async () => {
  const { ctx } = world.admin;
  expect(await code(create(world.lead.ctx, lesson()))).toBe("forbidden");
  expect(await code(preview(world.lead.ctx, lesson()))).toBe("forbidden");
  const repeat = { until: "2027-04-06", timeZone: "Europe/Berlin" };
  const refused = [
    { ...repeat, timeZone: "Nowhere/City" },
    { ...repeat, timeZone: "+02:00" },
    { ...repeat, until: "soon" },
    { ...repeat, until: "2028-01-01" },
  ];
  for (const one of refused) expect(await code(create(ctx, { ...lesson(), repeat: one }))).toBe("invalid");
  expect(await preview(ctx, { ...lesson(), repeat: { ...repeat, until: "2028-01-01" } })).toMatchObject({
    ...{ refusal: "At most 26 weeks at once: until 2027-09-07, and anew after that.", count: 0 },
  });
  expect(await kept()).toEqual([]);
});
