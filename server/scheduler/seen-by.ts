/** What a reader may see of others: inside their teams names and notebooks, elsewhere the team alone. */
import type { Holding, Waiting, World } from "./types.ts";

export type Reader = { userId: string; teamIds: readonly string[]; seesAll: boolean };

/** A world with the one who is told of it: sentences take names by `holderSeen` and `waiterSeen` alone. */
export type Seen = World & { reader: Reader };

/** Nothing of a long queue is copied for it: what a name shows is found out where it is told. */
export function seenBy(reader: Reader, world: World): Seen {
  const { reservations } = world;
  if (reservations === undefined || reader.seesAll) return { ...world, reader };
  const shown = reservations.map(({ who, ...reservation }) =>
    who !== undefined && reader.teamIds.includes(reservation.teamId) ? { ...reservation, who } : reservation,
  );
  return { ...world, reader, reservations: shown };
}

/** A world as the person who asks sees it in their own workspace. */
export function seenByAsker({ userId, teamId }: Pick<Waiting, "userId" | "teamId">, world: World): Seen {
  return seenBy({ userId, teamIds: [teamId], seesAll: false }, world);
}

/** Who holds a lease, and what they call the notebook. */
export function holderSeen(holding: Holding, { reader, quotas }: Seen): Pick<Holding, "who" | "label"> {
  if (!isNamed(holding, reader)) return { who: `team ${quotas.get(holding.teamId)?.teamName ?? "?"}` };
  const { who, label } = holding;
  return label === undefined ? { who } : { who, label };
}

/** Whether the reader may know whose lease this is, and what they call the notebook. */
export function isSeen(holding: Holding, { reader }: Seen): boolean {
  return isNamed(holding, reader);
}

/** Whether the one who is told is the one who asked. */
export function isAsker({ userId }: Pick<Waiting, "userId">, { reader }: Seen): boolean {
  return userId === reader.userId;
}

/** Who asked: `you`, for the one who did. */
export function askerSeen(request: Waiting, world: Seen): string {
  return isAsker(request, world) ? "you" : waiterSeen(request, world);
}

/** Who waits. */
export function waiterSeen(waiting: Waiting, { reader }: Seen): string {
  return isNamed(waiting, reader) ? waiting.who : "Somebody";
}

function isNamed({ teamId, userId }: Pick<Waiting, "teamId" | "userId">, reader: Reader): boolean {
  return reader.seesAll || userId === reader.userId || reader.teamIds.includes(teamId);
}
