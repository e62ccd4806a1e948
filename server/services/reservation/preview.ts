import { authorize, type Context } from "#server/context.ts";
import {
  type CreatedReservation,
  type CreateReservationInput,
  createReservationInput,
  type ReservationEffects,
} from "#server/contracts/sharing.ts";
import { parse } from "#server/parse.ts";
import { evaluate } from "#server/scheduler/queue.ts";
import { allOf } from "#server/scheduler/reservation.ts";
import { leasesOf } from "#server/scheduler/share.ts";
import { proofOf } from "#server/services/calendar/proof.ts";
import { loadWorld } from "#server/services/lease/world.ts";
import { rolledBack } from "#server/services/rolled-back.ts";
import { createProved } from "./create.ts";

/**
 * What a reservation would do: it is made, its time is gone to (of a series the first one), its team takes all of it, and
 * all of that is undone. Of what runs now, only what lasts until then is there.
 */
export async function preview(ctx: Context, raw: CreateReservationInput): Promise<ReservationEffects> {
  authorize(ctx.principal, "reservation.create");
  const { gpuType, startsAt } = parse(createReservationInput, raw);
  return await rolledBack(ctx, async (tx) => {
    let reserved: CreatedReservation | undefined;
    const proof = await proofOf(async () => {
      const { made, spareMilli } = await createProved(tx, raw);
      reserved = made;
      return spareMilli;
    });
    if (reserved === undefined) return { ...proof, count: 0, displaced: [] };
    const { id, following } = reserved;
    const then = new Date(Math.max(tx.now().getTime(), Date.parse(startsAt)));
    const world = await loadWorld(tx.db, gpuType, then);
    const holdings = world.holdings.filter(({ expiresAt }) => expiresAt > then.getTime());
    const made = world.reservations?.find((one) => one.id === id);
    // For one person room is made for what they do not hold already, whether they ask or not.
    const queue = made === undefined || made.userId !== undefined ? [] : allOf(made);
    const told = new Set(evaluate({ ...world, holdings, queue }).notices.map(({ leaseId }) => leaseId));
    const displaced = leasesOf(holdings)
      .filter((lease) => told.has(lease.id))
      .map(({ first, milli }) => ({
        ...{ who: first.who, teamName: world.quotas.get(first.teamId)?.teamName ?? "", milli },
      }));
    return { ...proof, count: 1 + following.length, displaced };
  });
}
