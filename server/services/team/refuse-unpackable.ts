/** Refuses a promise that the devices cannot keep, with the packing that shows it. */
import { and, eq, gt, ne } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { gpuServers, gpus, quotas, quotaWindows, reservations, teamPolicies, teams } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { SluiceError } from "#server/errors.ts";
import { formatQuota, WHOLE } from "#server/scheduler/amount.ts";
import { type Promised, type Proof, prove } from "#server/scheduler/packing.ts";
import { loadAdditions } from "#server/services/lease/world-quotas.ts";

/** A quota as it will be after the edit. */
export type Edited = { teamId: string; guaranteedMilli: number; limitMilli: number; largestMilli: number | null };

type Extra = { additions?: Promised["additions"][number][]; reservation?: Promised["reservations"][number] };

/**
 * Call under the type's lock. Proves every breakpoint of the calendar, of additions and of reservations. Returns what
 * is left over then at worst, thousandths, on devices that hold a guarantee.
 */
export async function refuseUnpackable(
  tx: Context,
  gpuType: string,
  edited?: Edited,
  extra: Extra = {},
): Promise<number> {
  const { proof, promised } = await proofOf(tx, gpuType, edited, extra);
  if (proof.ok) return proof.spareMilli;
  const { missing, at, packing } = proof;
  const alone = promised.quotas.some(({ coTenancy }) => coTenancy !== "any");
  const when = new Date(at).toISOString().slice(0, 16).replace("T", " ");
  throw new SluiceError(
    "quota",
    `The guarantees of ${gpuType} do not fit the devices: ${formatQuota(missing.milli)} of team ${missing.teamName} has no place at ${when} UTC. ` +
      `Lower a guarantee, state a smaller largest request, ${alone ? "let teams share cards, " : ""}or add a device.`,
    { at: new Date(at).toISOString(), missing, packing },
  );
}

/** The largest request for which a guarantee is proved: what is not stated is one GPU, or all of a smaller guarantee. */
export const largestOf = (quota: { largestMilli: number | null }): number => quota.largestMilli ?? WHOLE;

/** Whether the devices can keep what is promised, as things stand. */
export async function isPackable(tx: Context, gpuType: string): Promise<boolean> {
  return (await proofOf(tx, gpuType)).proof.ok;
}

async function proofOf(
  tx: Context,
  gpuType: string,
  edited?: Edited,
  extra: Extra = {},
): Promise<{ proof: Proof; promised: Promised }> {
  const now = tx.now();
  const [devices, rows, windows, additions, reserved, sharing] = await Promise.all([
    tx.db
      .select({ id: gpus.id, name: gpus.name, serverName: gpuServers.name })
      .from(gpus)
      .innerJoin(gpuServers, eq(gpuServers.id, gpus.serverId))
      .where(and(eq(gpus.gpuType, gpuType), ne(gpuServers.state, "removed"))),
    tx.db
      .select({ quota: quotas, teamName: teams.name })
      .from(quotas)
      .innerJoin(teams, eq(teams.id, quotas.teamId))
      .where(eq(quotas.gpuType, gpuType)),
    tx.db.select().from(quotaWindows).where(eq(quotaWindows.gpuType, gpuType)),
    loadAdditions(tx.db, gpuType, now),
    tx.db
      .select()
      .from(reservations)
      .where(and(eq(reservations.gpuType, gpuType), gt(reservations.endsAt, now))),
    tx.db.select({ teamId: teamPolicies.teamId, coTenancy: teamPolicies.coTenancy }).from(teamPolicies),
  ]);
  const others = rows.filter(({ quota }) => quota.teamId !== edited?.teamId);
  const names = new Map(rows.map(({ quota, teamName }) => [quota.teamId, teamName]));
  const policies = new Map(sharing.map(({ teamId, coTenancy }) => [teamId, coTenancy]));
  const promised: Promised = {
    zone: env().SLUICE_TIME_ZONE,
    quotas: [...others.map(({ quota }) => quota), ...(edited === undefined ? [] : [edited])].map((quota) => ({
      teamId: quota.teamId,
      teamName: names.get(quota.teamId) ?? "this team",
      guaranteedMilli: quota.guaranteedMilli,
      limitMilli: quota.limitMilli,
      largestMilli: largestOf(quota),
      coTenancy: policies.get(quota.teamId) ?? "any",
      windows: windows
        .filter((window) => window.teamId === quota.teamId)
        .map(({ fromMinute, toMinute, ...rest }) => ({ from: fromMinute, to: toMinute, ...rest })),
    })),
    additions: [...additions, ...(extra.additions ?? [])],
    reservations: [
      ...reserved.map(({ teamId, milli, unitMilli, startsAt, endsAt }) => ({
        ...{ teamId, milli, unitMilli, from: startsAt.getTime(), to: endsAt.getTime() },
      })),
      ...(extra.reservation === undefined ? [] : [extra.reservation]),
    ],
  };
  return { proof: prove(devices, promised, now.getTime()), promised };
}
