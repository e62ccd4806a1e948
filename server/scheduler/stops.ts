/** Stop switches and the calendar: what holds everybody of a kind back, whatever is free. */
import type { Obstacle, Stop, Waiting, World } from "./types.ts";

/** The stop that binds this request; the widest one is named. */
export function stopFor(
  request: Pick<Waiting, "teamId" | "userId">,
  stops: readonly Stop[] | undefined,
): Stop | undefined {
  if (stops === undefined || stops.length === 0) return undefined;
  const binds = (stop: Stop) =>
    stop.scope === "all" || stop.subjectId === (stop.scope === "team" ? request.teamId : request.userId);
  const widest = { all: 0, team: 1, user: 2 } as const;
  return stops.filter(binds).sort((a, b) => widest[a.scope] - widest[b.scope])[0];
}

/** Why nothing of this kind is granted now. */
export function heldBack(request: Waiting, world: Pick<World, "stops" | "open">): Obstacle | undefined {
  const stop = stopFor(request, world.stops);
  if (stop) return { rule: "stopped", scope: stop.scope, reason: stop.reason };
  const { open } = world;
  if (open === undefined || open.kinds.includes(request.kind ?? "interactive")) return undefined;
  return { rule: "calendar", ...(open.nextAt === undefined ? {} : { opensAt: open.nextAt }) };
}
