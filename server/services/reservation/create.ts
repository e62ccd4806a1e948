import { and, asc, eq, gt, inArray } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import {
  type CreatedReservation,
  type CreateReservationInput,
  createReservationInput,
} from "#server/contracts/sharing.ts";
import { memberships, quotas, reservations, teamPolicies } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { newId } from "#server/ids.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { formatQuota, WHOLE } from "#server/scheduler/amount.ts";
import { inUtc } from "#server/scheduler/calendar.ts";
import { lockGpuType } from "#server/services/lease/world.ts";
import { refuseUnpackable } from "#server/services/team/refuse-unpackable.ts";
import { inParts } from "./amounts.ts";
import { type Occurrence, occurrencesOf } from "./occurrences.ts";
import { selectReservations, viewOf } from "./view.ts";

/**
 * Reserves a part of the pool for a team, or for one member of it, and a time, or the same time of every week; refused
 * when one of them does not fit beside the guarantees of then, when it is more than the member may hold at once, or parts
 * of a GPU for a team that takes whole ones.
 */
export async function create(ctx: Context, raw: CreateReservationInput): Promise<CreatedReservation> {
  return (await createProved(ctx, raw)).made;
}

/** The same, with what its proof has left over at worst, for whoever asks what it would do. */
export async function createProved(
  ctx: Context,
  raw: CreateReservationInput,
): Promise<{ made: CreatedReservation; spareMilli: number }> {
  authorize(ctx.principal, "reservation.create");
  const { startsAt, endsAt, repeat, amount, unit, ...given } = parse(createReservationInput, raw);
  const occurrences = occurrencesOf({ startsAt: new Date(startsAt), endsAt: new Date(endsAt) }, repeat);
  return await inTransaction(ctx, async (tx) => {
    const input = { ...given, ...(await inParts(tx, { gpuType: given.gpuType, amount, unit })) };
    await lockGpuType(tx.db, input.gpuType);
    const [quota] = await tx.db
      .select({ personMilli: quotas.personMilli, coTenancy: teamPolicies.coTenancy })
      .from(quotas)
      .leftJoin(teamPolicies, eq(teamPolicies.teamId, quotas.teamId))
      .where(and(eq(quotas.teamId, input.teamId), eq(quotas.gpuType, input.gpuType)));
    if (quota === undefined) {
      throw new SluiceError("not-found", `The team has no quota for ${input.gpuType}. Set one first.`);
    }
    if (quota.coTenancy === "whole-cards") refuseParts(input);
    if (occurrences[0].endsAt <= tx.now()) throw new SluiceError("invalid", "endsAt: This time is over.");
    const { userId = null } = input;
    if (userId !== null) await refuseForMember(tx, { ...input, userId }, occurrences, quota.personMilli);
    const id = newId("rsv");
    const seriesId = occurrences.length > 1 ? id : null;
    const rows = occurrences.map((occurrence, week) => ({
      ...{ id: week === 0 ? id : newId("rsv"), ...input, userId, seriesId, createdAt: tx.now() },
      ...occurrence,
    }));
    await tx.db.insert(reservations).values(rows);
    const spareMilli = await refuseUnpackable(tx, input.gpuType);
    const [made, ...following] = await selectReservations(tx)
      .where(
        inArray(
          reservations.id,
          rows.map((row) => row.id),
        ),
      )
      .orderBy(asc(reservations.startsAt));
    if (made === undefined) throw new Error("a reservation that was just written is there");
    const detail = { gpuType: input.gpuType, milli: input.milli, userId, startsAt, endsAt };
    await audit(tx, {
      ...{ action: "reservation.create", subject: id, teamId: input.teamId },
      detail: seriesId === null ? detail : { ...detail, repeat, count: rows.length },
    });
    await notify(tx.db, "pool", id);
    return { made: { ...viewOf(made), following: following.map(viewOf) }, spareMilli };
  });
}

/** Who takes whole cards only is charged for whole ones: a part of one that is kept for them is of no use to anybody. */
function refuseParts({ milli, unitMilli }: { milli: number; unitMilli: number }): void {
  const whole = "This team takes whole GPUs only (its policy).";
  if (milli % WHOLE !== 0) throw new SluiceError("invalid", `amount: ${whole} Reserve 1, 2 or more.`);
  if (unitMilli % WHOLE !== 0) throw new SluiceError("invalid", `unit: ${whole} Reserve for leases of 1.`);
}

type ForMember = Pick<typeof reservations.$inferSelect, "teamId" | "gpuType" | "milli"> & { userId: string };

/** Nobody has more reserved at one time than the ceiling lets them hold: the rest would lie idle. */
async function refuseForMember(
  tx: Context,
  { teamId, userId, gpuType, milli }: ForMember,
  occurrences: readonly [Occurrence, ...Occurrence[]],
  personMilli: number | null,
): Promise<void> {
  const [member] = await tx.db
    .select({ userId: memberships.userId })
    .from(memberships)
    .where(and(eq(memberships.teamId, teamId), eq(memberships.userId, userId)));
  if (member === undefined) throw new SluiceError("invalid", "userId: This person is not in the team. Add them first.");
  if (personMilli === null) return;
  const theirs = await tx.db
    .select({ milli: reservations.milli, startsAt: reservations.startsAt, endsAt: reservations.endsAt })
    .from(reservations)
    .where(
      and(
        ...[eq(reservations.teamId, teamId), eq(reservations.userId, userId), eq(reservations.gpuType, gpuType)],
        gt(reservations.endsAt, occurrences[0].startsAt),
      ),
    );
  for (const { startsAt, endsAt } of occurrences) {
    const beside = theirs.filter((one) => one.startsAt < endsAt && one.endsAt > startsAt);
    if (beside.reduce((sum, one) => sum + one.milli, milli) <= personMilli) continue;
    throw new SluiceError(
      "invalid",
      `amount: Each person of the team may hold at most ${formatQuota(personMilli)} ${gpuType} at once, and would have more reserved at ${inUtc(startsAt.getTime())}. Reserve less, or raise that first.`,
    );
  }
}
