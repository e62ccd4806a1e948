import { asc, eq, inArray } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import type { CalendarList } from "#server/contracts/sharing.ts";
import { calendarVersions, kindWindows, quotas, quotaWindows, teams } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { knownGpuTypes } from "#server/services/lease/world.ts";

/** The calendars of all GPU types, and of the quotas of one's own teams; for an admin of all. */
export async function list(ctx: Context): Promise<CalendarList> {
  authorize(ctx.principal, "calendar.list");
  const { principal, db } = ctx;
  const own = principal.kind === "user" && !principal.isAdmin ? Object.keys(principal.teams) : undefined;
  const ofTeams = own === undefined ? undefined : inArray(quotas.teamId, own);
  const [gpuTypes, kinds, held, windows, versions] = await Promise.all([
    knownGpuTypes(db),
    db.select().from(kindWindows).orderBy(asc(kindWindows.fromMinute), asc(kindWindows.id)),
    own?.length === 0
      ? []
      : db
          .select({ quota: quotas, teamName: teams.name })
          .from(quotas)
          .innerJoin(teams, eq(teams.id, quotas.teamId))
          .where(ofTeams)
          .orderBy(asc(teams.name)),
    db.select().from(quotaWindows).orderBy(asc(quotaWindows.fromMinute), asc(quotaWindows.id)),
    db.select().from(calendarVersions),
  ]);
  const versionOf = (gpuType: string, teamId: string | null) =>
    versions.find((one) => one.gpuType === gpuType && one.teamId === teamId)?.version ?? 0;
  return {
    timeZone: env().SLUICE_TIME_ZONE,
    calendars: gpuTypes.map((gpuType) => ({
      gpuType,
      windows: kinds
        .filter((one) => one.gpuType === gpuType)
        .map(({ fromMinute, toMinute, kind }) => ({ fromMinute, toMinute, kind })),
      version: versionOf(gpuType, null),
      quotas: held
        .filter(({ quota }) => quota.gpuType === gpuType)
        .map(({ quota: { teamId, guaranteedMilli, limitMilli }, teamName }) => ({
          ...{ teamId, teamName, guaranteedMilli, limitMilli, version: versionOf(gpuType, teamId) },
          windows: windows
            .filter((one) => one.gpuType === gpuType && one.teamId === teamId)
            .map(({ fromMinute, toMinute, guaranteedMilli: guaranteed, limitMilli: limit }) => ({
              ...{ fromMinute, toMinute, guaranteedMilli: guaranteed, limitMilli: limit },
            })),
        })),
    })),
  };
}
