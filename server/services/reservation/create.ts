import { and, eq, gt, lt } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import {
  type CreateReservationInput,
  createReservationInput,
  type ReservationView,
} from "#server/contracts/sharing.ts";
import { memberships, quotas, reservations, teamPolicies } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { newId } from "#server/ids.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { formatQuota, WHOLE } from "#server/scheduler/amount.ts";
import { lockGpuType } from "#server/services/lease/world.ts";
import { refuseUnpackable } from "#server/services/team/refuse-unpackable.ts";
import { selectReservations, viewOf } from "./view.ts";

/**
 * Reserves a part of the pool for a team, or for one member of it, and a time; refused when it does not fit beside the
 * guarantees of then, when it is more than the member may hold at once, or parts of a GPU for a team that takes whole ones.
 */
export async function create(ctx: Context, raw: CreateReservationInput): Promise<ReservationView> {
  authorize(ctx.principal, "reservation.create");
  const { startsAt, endsAt, ...input } = parse(createReservationInput, raw);
  return await inTransaction(ctx, async (tx) => {
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
    const row = {
      ...{ id: newId("rsv"), ...input, userId: input.userId ?? null, createdAt: tx.now() },
      ...{ startsAt: new Date(startsAt), endsAt: new Date(endsAt) },
    };
    if (row.endsAt <= tx.now()) throw new SluiceError("invalid", "endsAt: This time is over.");
    if (row.userId !== null) await refuseForMember(tx, { ...row, userId: row.userId }, quota.personMilli);
    await tx.db.insert(reservations).values(row);
    await refuseUnpackable(tx, input.gpuType);
    const [made] = await selectReservations(tx).where(eq(reservations.id, row.id));
    if (made === undefined) throw new Error("a reservation that was just written is there");
    const detail = { gpuType: input.gpuType, milli: input.milli, userId: row.userId, startsAt, endsAt };
    await audit(tx, { action: "reservation.create", subject: row.id, teamId: input.teamId, detail });
    await notify(tx.db, "pool", row.id);
    return viewOf(made);
  });
}

/** Who takes whole cards only is charged for whole ones: a part of one that is kept for them is of no use to anybody. */
function refuseParts({ milli, unitMilli }: { milli: number; unitMilli: number }): void {
  const whole = "This team takes whole GPUs only (its policy).";
  if (milli % WHOLE !== 0) throw new SluiceError("invalid", `milli: ${whole} Reserve 1, 2 or more.`);
  if (unitMilli % WHOLE !== 0) throw new SluiceError("invalid", `unitMilli: ${whole} Reserve for leases of 1.`);
}

type Row = typeof reservations.$inferInsert & { userId: string };

/** Nobody has more reserved at one time than the ceiling lets them hold: the rest would lie idle. */
async function refuseForMember(tx: Context, row: Row, personMilli: number | null): Promise<void> {
  const { teamId, userId, gpuType } = row;
  const [member] = await tx.db
    .select({ userId: memberships.userId })
    .from(memberships)
    .where(and(eq(memberships.teamId, teamId), eq(memberships.userId, userId)));
  if (member === undefined) throw new SluiceError("invalid", "userId: This person is not in the team. Add them first.");
  if (personMilli === null) return;
  const beside = await tx.db
    .select({ milli: reservations.milli })
    .from(reservations)
    .where(
      and(
        ...[eq(reservations.teamId, teamId), eq(reservations.userId, userId), eq(reservations.gpuType, gpuType)],
        ...[lt(reservations.startsAt, row.endsAt), gt(reservations.endsAt, row.startsAt)],
      ),
    );
  const milli = beside.reduce((sum, one) => sum + one.milli, row.milli);
  if (milli <= personMilli) return;
  throw new SluiceError(
    "invalid",
    `milli: Each person of the team may hold at most ${formatQuota(personMilli)} ${gpuType} at once. Reserve less, or raise that first.`,
  );
}
