import { formatAmount, formatBytes } from "#components/format.ts";
import { Figure, Figures } from "#components/ui/page.tsx";
import type { PoolOverview } from "#server/contracts/gpu-server.ts";

const share = (part: number, whole: number) => (whole > 0 ? `${Math.round((part / whole) * 100)} %` : "0 %");

/** The four figures of the pool: leased, memory in use, held idle, waiting. */
export function PoolFigures({ pool }: { pool: PoolOverview }) {
  const sum = (pick: (total: PoolOverview["totals"][number]) => number) =>
    pool.totals.reduce((all, total) => all + pick(total), 0);
  const open = sum((total) => total.capacityMilli);
  // Devices that drain still hold what was leased before, so they count here.
  const capacity = pool.devices.filter((device) => device.state !== "lost").length * 1000;
  const leased = sum((total) => total.leasedMilli);
  const idle = sum((total) => total.idleHeldMilli);
  const queued = sum((total) => total.queued);
  const used = pool.devices.reduce((all, device) => all + device.usedMemoryBytes, 0);
  const leasedMemory = pool.devices.reduce((all, device) => all + device.leasedMemoryBytes, 0);
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
      <Figure label="Waiting" value={queued} unit={queued === 1 ? "request" : "requests"} detail={byType(pool)} />
    </Figures>
  );
}

function byType(pool: PoolOverview): string {
  const waiting = pool.totals.filter((total) => total.queued > 0);
  return waiting.length === 0
    ? "nobody queues"
    : waiting.map((total) => `${total.queued} for ${total.gpuType}`).join(", ");
}
