/** What a reader may see of others: inside their teams names and notebooks, elsewhere the team alone. */
import type { World } from "./types.ts";

export type Reader = { userId: string; teamIds: readonly string[]; seesAll: boolean };

export function seenBy(reader: Reader, world: World): World {
  if (reader.seesAll) return world;
  const own = new Set(reader.teamIds);
  const teamOf = (teamId: string) => `team ${world.quotas.get(teamId)?.teamName ?? "?"}`;
  return {
    ...world,
    holdings: world.holdings.map(({ label, ...holding }) =>
      own.has(holding.teamId) || holding.userId === reader.userId
        ? { ...holding, label }
        : { ...holding, who: teamOf(holding.teamId) },
    ),
    queue: world.queue.map((waiting) =>
      own.has(waiting.teamId) || waiting.userId === reader.userId ? waiting : { ...waiting, who: "Somebody" },
    ),
    ...(world.reservations === undefined
      ? {}
      : {
          reservations: world.reservations.map(({ who, ...reservation }) =>
            who !== undefined && own.has(reservation.teamId) ? { ...reservation, who } : reservation,
          ),
        }),
  };
}
