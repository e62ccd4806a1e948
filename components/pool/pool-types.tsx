import { formatAmount, plural } from "#components/format.ts";
import { Link } from "#components/ui/link.tsx";
import { Meter } from "#components/ui/meter.tsx";
import type { PoolTotal } from "#server/contracts/gpu-server.ts";

/** A pool of many devices by type: how much of each is leased and held idle, and who waits. */
export function PoolTypes({ totals }: { totals: PoolTotal[] }) {
  return (
    <ul aria-label="By GPU type" className="mb-6 divide-y divide-line rounded-lg border border-line bg-surface">
      {totals.map((total) => {
        const whole = (total.devices - total.lostDevices) * 1000;
        const idle = Math.min(total.idleHeldMilli, total.leasedMilli);
        const words = [
          plural(total.devices, "device"),
          ...(total.lostDevices > 0 ? [`${total.lostDevices} not connected`] : []),
          `${formatAmount(idle)} held idle`,
          ...(total.queued > 0 ? [`${plural(total.queued, "request")} waiting`] : []),
          ...(total.strandedMilli > 0 ? [`${formatAmount(total.strandedMilli)} free fits none of them`] : []),
        ];
        return (
          <li
            key={total.gpuType}
            className="grid items-center gap-x-4 gap-y-1 px-4 py-2.5 md:grid-cols-[7rem_minmax(0,1fr)_minmax(0,1.2fr)]"
          >
            <Link
              href={`/pool?search=${total.gpuType}`}
              className="justify-self-start font-medium underline-offset-4 hover:underline"
            >
              {total.gpuType}
            </Link>
            <Meter
              max={whole}
              segments={[
                { key: "used", value: total.leasedMilli - idle, look: "used" },
                { key: "idle", value: idle, look: "held" },
              ]}
              label={`${total.gpuType}: ${formatAmount(total.leasedMilli)} of ${formatAmount(whole)} leased, ${formatAmount(idle)} of it held idle`}
            />
            <span className="figures text-sm text-ink-2">
              <span className="text-ink">
                {formatAmount(total.leasedMilli)} of {formatAmount(whole)} leased
              </span>
              , {words.join(", ")}
            </span>
          </li>
        );
      })}
    </ul>
  );
}
