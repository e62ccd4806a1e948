import { and, eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import {
  type CreateReservationInput,
  createReservationInput,
  type ReservationView,
} from "#server/contracts/sharing.ts";
import { quotas, reservations } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { newId } from "#server/ids.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { lockGpuType } from "#server/services/lease/world.ts";
import { refuseUnpackable } from "#server/services/team/refuse-unpackable.ts";
import { viewOf } from "./view.ts";

/** Reserves a part of the pool for a team and a time; refused when it does not fit beside the guarantees of then. */
export async function create(ctx: Context, raw: CreateReservationInput): Promise<ReservationView> {
  authorize(ctx.principal, "reservation.create");
  const { startsAt, endsAt, ...input } = parse(createReservationInput, raw);
  return await inTransaction(ctx, async (tx) => {
    await lockGpuType(tx.db, input.gpuType);
    const [quota] = await tx.db
      .select({ teamId: quotas.teamId })
      .from(quotas)
      .where(and(eq(quotas.teamId, input.teamId), eq(quotas.gpuType, input.gpuType)));
    if (quota === undefined) {
      throw new SluiceError("not-found", `The team has no quota for ${input.gpuType}. Set one first.`);
    }
    const row = {
      ...{ id: newId("rsv"), ...input, createdAt: tx.now() },
      ...{ startsAt: new Date(startsAt), endsAt: new Date(endsAt) },
    };
    if (row.endsAt <= tx.now()) throw new SluiceError("invalid", "endsAt: This time is over.");
    await tx.db.insert(reservations).values(row);
    await refuseUnpackable(tx, input.gpuType);
    const detail = { gpuType: input.gpuType, milli: input.milli, startsAt, endsAt };
    await audit(tx, { action: "reservation.create", subject: row.id, teamId: input.teamId, detail });
    await notify(tx.db, "pool", row.id);
    return viewOf(row);
  });
}
