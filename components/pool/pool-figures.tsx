import { formatAmount, formatBytes, formatDuration } from "#components/format.ts";
import { Figure, Figures } from "#components/ui/page.tsx";
import type { PoolTotal } from "#server/contracts/gpu-server.ts";

const share = (part: number, whole: number) => (whole > 0 ? `${Math.round((part / whole) * 100)} %` : "0 %");

/** The four figures of the pool: leased, memory in use, held idle, waiting. `waitP95`: of the last week's grants, seconds. */
export function PoolFigures({ totals, waitP95 }: { totals: PoolTotal[]; waitP95: number | null }) {
  const sum = (pick: (total: PoolTotal) => number) => totals.reduce((all, total) => all + pick(total), 0);
  const open = sum((total) => total.capacityMilli);
  // Devices that drain still hold what was leased before, so they count here.
  const capacity = sum((total) => total.devices - total.lostDevices) * 1000;
  const leased = sum((total) => total.leasedMilli);
  const idle = sum((total) => total.idleHeldMilli);
  const queued = sum((total) => total.queued);
  const stranded = sum((total) => total.strandedMilli);
  const used = sum((total) => total.usedMemoryBytes);
  const leasedMemory = sum((total) => total.leasedMemoryBytes);
  return (
    <Figures>
      <Figure
        label="Leased"
        value={formatAmount(leased)}
        unit={`of ${formatAmount(capacity)} GPUs`}
        detail={
          open < capacity
            ? `${share(leased, capacity)}; ${formatAmount(open)} take new leases`
            : share(leased, capacity)
        }
      />
      <Figure
        label="GPU memory used"
        value={formatBytes(used)}
        detail={`of ${formatBytes(leasedMemory)} leased, ${share(used, leasedMemory)}`}
      />
      <Figure label="Held idle" value={formatAmount(idle)} unit="GPUs" detail="no GPU work for five minutes" />
      <Figure
        label="Waiting"
        value={queued}
        unit={queued === 1 ? "request" : "requests"}
        detail={
          <>
            {byType(totals, stranded)}
            {waitP95 !== null && <span className="block">p95 wait {formatDuration(waitP95 * 1000)} (7 days)</span>}
          </>
        }
      />
    </Figures>
  );
}

function byType(totals: PoolTotal[], stranded: number): string {
  const waiting = totals.filter((total) => total.queued > 0);
  if (waiting.length === 0) return "the queue is empty";
  const types = waiting.map((total) => `${total.queued} for ${total.gpuType}`).join(", ");
  return stranded > 0 ? `${types}; ${formatAmount(stranded)} free fits none of them` : types;
}
