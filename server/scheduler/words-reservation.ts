/** Sentences for what is reserved for others. */
import { formatQuota } from "./amount.ts";
import { inUtc } from "./calendar.ts";
import { keptReservations, reservationsAt } from "./share.ts";
import type { Reservation, Waiting, World } from "./types.ts";

type Asking = Pick<Waiting, "teamId" | "userId">;

/** For whom, as far as the reader may see: `Ada (team vision)`, `team vision`. */
export function reservedFor({ teamId, who }: Reservation, world: Pick<World, "quotas">): string {
  const team = `team ${world.quotas.get(teamId)?.teamName ?? "?"}`;
  return who === undefined ? team : `${who} (${team})`;
}

/** What of the request's own team is reserved for others of it; nothing when nothing is. */
export function reservedInTeam({ teamId, userId }: Asking, world: World): string | undefined {
  const others = reservationsAt(world, world.now).filter(
    (one) => one.teamId === teamId && one.userId !== undefined && one.userId !== userId,
  );
  return others.length === 0
    ? undefined
    : `Of that ${listed(others, (one) => one.who ?? "one person", world)} ${whenWords(others, world)}.`;
}

/** What of the devices is kept for those to whom the request does not belong, or for later; nothing when nothing is. */
export function reservedForOthers({ teamId, userId }: Asking, world: World): string | undefined {
  const others = keptReservations(world).filter(
    (one) => one.teamId !== teamId || (one.userId !== undefined && one.userId !== userId) || one.from > world.now,
  );
  if (others.length === 0) return undefined;
  return `${listed(others, (one) => reservedFor(one, world), world)} ${whenWords(others, world)}.`;
}

/** So many are told one by one. */
const NAMED = 3;

function listed(reservations: Reservation[], forWhom: (one: Reservation) => string, { gpuType }: World): string {
  const parts = reservations.slice(0, NAMED).map((one) => `${formatQuota(one.milli)} ${gpuType} for ${forWhom(one)}`);
  if (reservations.length > NAMED) {
    const rest = reservations.slice(NAMED).reduce((sum, { milli }) => sum + milli, 0);
    parts.push(`${formatQuota(rest)} ${gpuType} for others`);
  }
  return `${parts.join(", ")} ${reservations.length === 1 ? "is" : "are"} reserved`;
}

function whenWords(reservations: Reservation[], { now }: Pick<World, "now">): string {
  const from = Math.min(...reservations.map((one) => one.from));
  const until = `until ${inUtc(Math.max(...reservations.map(({ to }) => to)))}`;
  return from > now ? `from ${inUtc(from)} ${until}` : until;
}
