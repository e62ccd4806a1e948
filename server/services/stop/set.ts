import { and, eq, inArray } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type SetStopAnswer, type SetStopInput, setStopInput } from "#server/contracts/sharing.ts";
import { leases, stopSwitches } from "#server/db/schema/index.ts";
import { newId } from "#server/ids.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { beginEnd } from "#server/services/lease/ending.ts";
import { knownGpuTypes, lockGpuTypes } from "#server/services/lease/world.ts";

/**
 * Grants no new leases from now on: to anybody, to a team, or to a person. Who waits keeps the place. With `endLeases`
 * what is held ends too; the notebooks live and their memory is parked, as when they give it back.
 */
export async function setStop(ctx: Context, raw: SetStopInput): Promise<SetStopAnswer> {
  authorize(ctx.principal, "stop.set");
  const { scope, subjectId, reason, endLeases } = parse(setStopInput, raw);
  return await inTransaction(ctx, async (tx) => {
    // A round that began before is done then: what it has granted ends with the rest, and the next one knows the stop.
    await lockGpuTypes(tx.db, await knownGpuTypes(tx.db));
    const id = newId("stp");
    await tx.db.insert(stopSwitches).values({ id, scope, subjectId: subjectId ?? null, reason, createdAt: tx.now() });
    const ended = endLeases ? await endAll(tx, scope, subjectId, reason) : 0;
    const detail = { scope, subjectId: subjectId ?? null, reason, endedLeases: ended };
    await audit(tx, { action: "stop.set", subject: id, detail, ...(scope === "team" ? { teamId: subjectId } : {}) });
    await notify(tx.db, "pool", id);
    // The banner is on every page, and those follow leases.
    await notify(tx.db, "lease", id);
    return { id, endedLeases: ended };
  });
}

async function endAll(
  tx: Parameters<typeof beginEnd>[0],
  scope: "all" | "team" | "user",
  subjectId: string | undefined,
  note: string,
): Promise<number> {
  const whose = scope === "all" ? undefined : eq(scope === "team" ? leases.teamId : leases.userId, subjectId ?? "");
  const held = await tx.db
    .select({ id: leases.id })
    .from(leases)
    .where(and(whose, inArray(leases.state, ["granted", "active", "unreachable"])));
  const ended = await beginEnd(
    tx,
    held.map((lease) => lease.id),
    { reason: "ended by an admin", mode: "park", note },
  );
  return ended.length;
}
