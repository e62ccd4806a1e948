import { and, eq, gt, isNull, or } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type TeamInput, type TeamView, teamInput } from "#server/contracts/team.ts";
import type { Transaction } from "#server/db/client.ts";
import {
  identityGroups,
  memberships,
  oneTimeCodes,
  quotaRequests,
  quotas,
  quotaWindows,
  reservations,
  stopSwitches,
  teams,
} from "#server/db/schema/index.ts";
import { notify, notifyAll } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { advanceQueue } from "#server/services/lease/advance.ts";
import { withTypeLock } from "#server/services/lease/with-type-lock.ts";
import { get } from "./get.ts";
import { lockTeam } from "./lock.ts";
import { refuseInUse } from "./refuse-in-use.ts";

type Tx = Context & { db: Transaction };

/**
 * Puts a team away that nobody works in any more: what it was promised is free for others, and its people leave it. What
 * it used, its costs and the audit stay under its name; `restore` brings it back without people and promises.
 */
export async function archive(ctx: Context, raw: TeamInput): Promise<TeamView> {
  const { id } = parse(teamInput, raw);
  authorize(ctx.principal, "team.archive");
  const freed = await inTransaction(ctx, async (tx) => {
    const team = await lockTeam(tx, id);
    if (team.archivedAt !== null) return [];
    await refuseInUse(tx, team);
    const before = await endPromises(tx, id);
    await tx.db.update(teams).set({ archivedAt: tx.now() }).where(eq(teams.id, id));
    await audit(tx, { action: "team.archive", subject: id, teamId: id, detail: { name: team.name, before } });
    await notify(tx.db, "pool", id);
    await notifyAll(
      tx.db,
      before.people.map(({ userId }) => ({ topic: "people" as const, id: userId })),
    );
    return [...new Set(before.quotas.map(({ gpuType }) => gpuType))];
  });
  // Not with the team's row held, which every grant refers to. Until then more is kept for it than is promised.
  for (const gpuType of freed.sort()) await withTypeLock(ctx, gpuType, async (tx) => await advanceQueue(tx, gpuType));
  return await get(ctx, { id });
}

/** Takes away what people have by the team and what it is promised, and says what that was. */
async function endPromises(tx: Tx, teamId: string) {
  const now = tx.now();
  const people = await tx.db
    .delete(memberships)
    .where(eq(memberships.teamId, teamId))
    .returning({ userId: memberships.userId, role: memberships.role });
  const promised = await tx.db.delete(quotas).where(eq(quotas.teamId, teamId)).returning();
  await tx.db.delete(quotaWindows).where(eq(quotaWindows.teamId, teamId));
  await tx.db.delete(reservations).where(and(eq(reservations.teamId, teamId), gt(reservations.endsAt, now)));
  await tx.db
    .delete(quotaRequests)
    .where(and(eq(quotaRequests.teamId, teamId), or(eq(quotaRequests.state, "asked"), gt(quotaRequests.endsAt, now))));
  await tx.db.delete(identityGroups).where(eq(identityGroups.teamId, teamId));
  await tx.db.delete(oneTimeCodes).where(and(eq(oneTimeCodes.teamId, teamId), isNull(oneTimeCodes.usedAt)));
  await tx.db
    .update(stopSwitches)
    .set({ liftedAt: now })
    .where(and(eq(stopSwitches.scope, "team"), eq(stopSwitches.subjectId, teamId), isNull(stopSwitches.liftedAt)));
  return { people, quotas: promised.map(({ teamId: _, version: __, ...quota }) => quota) };
}
