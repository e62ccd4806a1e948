import { and, eq, gt, ne, or } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type RemoveQuotaInput, removeQuotaInput, type TeamView } from "#server/contracts/team.ts";
import {
  leaseRequests,
  leases,
  quotaRequests,
  quotas,
  quotaWindows,
  reservations,
  teams,
} from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { advanceQueue } from "#server/services/lease/advance.ts";
import { lockGpuType } from "#server/services/lease/world.ts";
import { refuseStale } from "#server/services/refuse-stale.ts";
import { get } from "./get.ts";

/**
 * Removes a team's quota for a GPU type, with its calendar, reservations and requests for more. Refused while the team
 * has a lease or a waiting request of this type. Capacity of the guarantee is granted to others at once.
 */
export async function removeQuota(ctx: Context, raw: RemoveQuotaInput): Promise<TeamView> {
  authorize(ctx.principal, "team.set-quota");
  const { teamId, gpuType, version } = parse(removeQuotaInput, raw);
  return await inTransaction(ctx, async (tx) => {
    await lockGpuType(tx.db, gpuType);
    const [team] = await tx.db.select().from(teams).where(eq(teams.id, teamId));
    if (team === undefined) throw new SluiceError("not-found", "There is no such team.");
    const ofQuota = and(eq(quotas.teamId, teamId), eq(quotas.gpuType, gpuType));
    const [before] = await tx.db.select().from(quotas).where(ofQuota);
    refuseStale(version, before, `the quota of ${team.name} for ${gpuType}`);
    if (before === undefined) throw new SluiceError("not-found", `Team ${team.name} has no quota for ${gpuType}.`);
    await refuseInUse(tx, team, gpuType);
    const of = (table: typeof quotaWindows | typeof reservations | typeof quotaRequests) =>
      and(eq(table.teamId, teamId), eq(table.gpuType, gpuType));
    const now = tx.now();
    await tx.db.delete(quotaWindows).where(of(quotaWindows));
    await tx.db.delete(reservations).where(and(of(reservations), gt(reservations.endsAt, now)));
    const open = or(eq(quotaRequests.state, "asked"), gt(quotaRequests.endsAt, now));
    await tx.db.delete(quotaRequests).where(and(of(quotaRequests), open));
    await tx.db.delete(quotas).where(ofQuota);
    await audit(tx, { action: "team.remove-quota", subject: teamId, teamId, detail: { gpuType, before } });
    await notify(tx.db, "pool", teamId);
    await advanceQueue(tx, gpuType);
    return await get(tx, { id: teamId });
  });
}

async function refuseInUse(tx: Context, team: { id: string; name: string }, gpuType: string): Promise<void> {
  const [held, waiting] = await Promise.all([
    tx.db.$count(leases, and(eq(leases.teamId, team.id), eq(leases.gpuType, gpuType), ne(leases.state, "ended"))),
    tx.db.$count(
      leaseRequests,
      and(eq(leaseRequests.teamId, team.id), eq(leaseRequests.gpuType, gpuType), eq(leaseRequests.state, "queued")),
    ),
  ]);
  if (held + waiting === 0) return;
  throw new SluiceError(
    "conflict",
    `Team ${team.name} still holds ${held} ${gpuType} ${held === 1 ? "lease" : "leases"} and has ${waiting} waiting. ` +
      "End them on the team's page, or set the limit to 0 and wait until they end.",
    { leases: held, requests: waiting },
  );
}
