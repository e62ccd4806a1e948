import { formatAmount } from "#components/format.ts";
import { Meter } from "#components/ui/meter.tsx";
import { State } from "#components/ui/state.tsx";
import type { TeamQuotaNow, WaitingRequest } from "#server/contracts/lease-board.ts";
import { formatGuaranteed } from "./guaranteed.ts";
import { formatWait, likelyWait, type Wait } from "./likely-wait.ts";

/** Each GPU type that one's teams may borrow: what would be granted at once, and how much the team has in use. */
export function FreeByType({ quotas, requests }: { quotas: TeamQuotaNow[]; requests: WaitingRequest[] }) {
  return (
    <ul className="grid gap-3 sm:grid-cols-2 2xl:grid-cols-3">
      {quotas.map((quota) => (
        <li key={`${quota.teamId} ${quota.gpuType}`} className="rounded-lg border border-line bg-surface px-4 py-3.5">
          <div className="flex items-baseline justify-between gap-3">
            <h3 className="font-medium">{quota.gpuType}</h3>
            <p className="text-sm text-ink-2">team {quota.teamName}</p>
          </div>
          <p className="figures mt-1">
            <FreeNow quota={quota} wait={likelyWait(requests, quota)} />
          </p>
          <div className="mt-3">
            <Meter
              max={quota.limitMilli}
              segments={[
                { key: "used", value: quota.usedMilli - quota.borrowedMilli, look: "used" },
                { key: "borrowed", value: quota.borrowedMilli, look: "borrowed" },
              ]}
              marks={
                quota.guaranteedNowMilli > 0 ? [{ at: quota.guaranteedNowMilli, title: formatGuaranteed(quota) }] : []
              }
              label={`${formatAmount(quota.usedMilli)} of ${formatAmount(quota.limitMilli)} in use, ${formatGuaranteed(quota)}`}
            />
          </div>
          <p className="figures mt-1.5 text-sm text-ink-2">
            {formatAmount(quota.usedMilli)} of {formatAmount(quota.limitMilli)} in use, {formatGuaranteed(quota)}; the
            pool has {formatAmount(quota.freeMilli)} of {formatAmount(quota.capacityMilli)} free
          </p>
          {quota.gpuType === "soft" && (
            <p className="mt-1.5 text-sm text-ink-2">The software GPU: correct, not fast; PyTorch needs a real GPU.</p>
          )}
        </li>
      ))}
    </ul>
  );
}

function FreeNow({ quota, wait }: { quota: TeamQuotaNow; wait: Wait | undefined }) {
  if (quota.atOnceMilli > 0) {
    return <State tone="ok">{formatAmount(quota.atOnceMilli)} granted at once</State>;
  }
  if (quota.capacityMilli === 0) return <State tone="bad">no GPU of this type is online</State>;
  if (quota.usedMilli >= quota.limitMilli) return <State tone="warn">the team is at its limit</State>;
  return <State tone="warn">{wait === undefined ? "would wait in the queue" : `in ${formatWait(wait)}`}</State>;
}
