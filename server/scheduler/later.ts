/**
 * What a team may use later of what it may not use now: by its calendar, a request for more that was approved, or a
 * reservation. Who asks for that much waits for it, and holds up nobody meanwhile.
 */
import { edgesAfter, quotaAt } from "./calendar.ts";
import type { More, Quota, Waiting, World } from "./types.ts";

/** Nobody waits longer than a day (`waitSeconds` of a request). */
const LONGEST_WAIT_MS = 24 * 3_600_000;

/** Which bound of a quota a request is above, whoever holds what; nothing when it is below both. */
export function aboveQuota(
  { guaranteedOnly }: Pick<Waiting, "guaranteedOnly">,
  { limitMilli, guaranteedMilli }: Quota,
  least: number,
): "team-limit" | "guaranteed" | undefined {
  if (least > limitMilli) return "team-limit";
  return guaranteedOnly && least > guaranteedMilli ? "guaranteed" : undefined;
}

type Asked = Pick<Waiting, "teamId" | "userId" | "guaranteedOnly">;

/** When its team may use so much for the first time, and how much then; nothing when no time is known. */
export function moreLater(request: Asked, least: number, world: World): More | undefined {
  const { guaranteedOnly } = request;
  const step = stepsFor(request, world).find(
    ({ limitMilli, guaranteedMilli }) => least <= limitMilli && (!guaranteedOnly || least <= guaranteedMilli),
  );
  return step && { at: step.at, milli: guaranteedOnly ? step.guaranteedMilli : step.limitMilli };
}

/** Whether somebody may wait for it. */
export function isSoon(more: More | undefined, now: number): boolean {
  return more !== undefined && more.at - now <= LONGEST_WAIT_MS;
}

type Step = { at: number; guaranteedMilli: number; limitMilli: number };

/** Found out once for each world, which nobody changes: all of a long queue may ask for it. */
const known = new WeakMap<World, Map<string, readonly Step[]>>();

function stepsFor({ teamId, userId }: Asked, world: World): readonly Step[] {
  const steps = known.get(world) ?? new Map<string, readonly Step[]>();
  known.set(world, steps);
  const key = `${teamId}/${userId}`;
  const found = steps.get(key) ?? stepsOf(teamId, userId, world);
  steps.set(key, found);
  return found;
}

/** The times of the next week, and of all that is approved or reserved, at which the quota changes for this person. */
function stepsOf(teamId: string, userId: string, world: World): Step[] {
  const { now, reservations = [] } = world;
  const quota = world.quotas.get(teamId);
  if (quota === undefined) return [];
  const { zone = "UTC", plain = quota, windows = [], additions = [] } = quota.calendar ?? {};
  const reserved = reservations.flatMap((one) =>
    one.teamId === teamId && (one.userId === undefined || one.userId === userId)
      ? [{ guaranteedMilli: one.milli, limitMilli: one.milli, from: one.from, to: one.to }]
      : [],
  );
  const stretches = [...additions, ...reserved];
  const times = [...edgesAfter(zone, windows, now), ...stretches.flatMap(({ from, to }) => [from, to])];
  return [...new Set(times)]
    .filter((at) => at > now)
    .sort((a, b) => a - b)
    .map((at) => ({ at, ...quotaAt({ zone, plain, windows, additions: stretches }, at) }));
}
