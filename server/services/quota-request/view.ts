import type { QuotaRequestView } from "#server/contracts/sharing.ts";
import type { quotaRequests } from "#server/db/schema/index.ts";

export function viewOf(row: typeof quotaRequests.$inferSelect): QuotaRequestView {
  const { id, teamId, gpuType, userId, guaranteedMilli, limitMilli, reason, state } = row;
  return {
    ...{ id, teamId, gpuType, userId, guaranteedMilli, limitMilli, reason, state },
    ...{ startsAt: row.startsAt.toISOString(), endsAt: row.endsAt.toISOString() },
    decidedAt: row.decidedAt?.toISOString() ?? null,
  };
}
