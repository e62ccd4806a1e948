/** Who holds what, for a reason's list. */
import type { LeaseReason } from "../contracts/lease.ts";
import { formatMilli } from "./amount.ts";
import { holderSeen, isSeen, type Seen } from "./seen-by.ts";
import { groupOf, leasesOf } from "./share.ts";
import type { Holding, Waiting, World } from "./types.ts";

/** Up to eight leases, those first that the reader knows to be the asker's, then those that have been idle longest. */
export function holders(
  request: Pick<Waiting, "userId">,
  holdings: readonly Holding[],
  world: Seen,
): NonNullable<LeaseReason["holders"]> {
  const own = (holding: Holding) => Number(holding.userId === request.userId && isSeen(holding, world));
  return leasesOf(holdings)
    .sort((a, b) => own(b.first) - own(a.first) || a.first.lastWorkAt - b.first.lastWorkAt)
    .slice(0, 8)
    .map(({ milli, first }) => ({
      amount: formatMilli(milli),
      ...holderSeen(first, world),
      ...(first.userId === world.reader.userId ? { who: "you" } : {}),
      idleSeconds: Math.max(0, Math.floor((world.now - first.lastWorkAt) / 1000)),
    }));
}

/** What the asker can do: give back the own lease that has been idle longest, or ask for what fits. */
export function soonerHint(
  request: Pick<Waiting, "userId">,
  holdings: readonly Holding[],
  fits: number,
  world: Seen,
): string | undefined {
  let idlest: Holding | undefined;
  for (const holding of holdings) {
    if (holding.userId !== request.userId || holding.label === undefined || !isSeen(holding, world)) continue;
    if (idlest === undefined || holding.lastWorkAt < idlest.lastWorkAt) idlest = holding;
  }
  if (idlest?.label !== undefined) return `run %gpu detach in ${idlest.label}`;
  return fits > 0 ? attachHint(fits, world) : undefined;
}

/** The line to type for an amount of this type, whichever a notebook asks for by itself. */
export function attachHint(milli: number, { gpuType }: Pick<World, "gpuType">): string {
  return `%gpu attach ${formatMilli(Math.max(1, milli))} --type ${gpuType}`;
}

/** The leases with these ids, all parts. */
export function holdingsOf(leaseIds: readonly string[], holdings: readonly Holding[]): Holding[] {
  const ids = new Set(leaseIds);
  return holdings.filter((holding) => ids.has(groupOf(holding)));
}
