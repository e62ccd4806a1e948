import { formatAmount, formatBytes } from "#components/format.ts";
import { EndLease } from "#components/lease/end-lease.tsx";
import { LeaseState } from "#components/lease/lease-state.tsx";
import { ownerLabel } from "#components/lease/owner-label.ts";
import { Meter } from "#components/ui/meter.tsx";
import { Badge, State } from "#components/ui/state.tsx";
import { Age } from "#components/ui/time.tsx";
import type { PoolDevice } from "#server/contracts/gpu-server.ts";
import { DeviceActions } from "./device-actions.tsx";

const states = {
  active: { tone: "ok", word: "takes leases" },
  draining: { tone: "warn", word: "draining" },
  lost: { tone: "bad", word: "server not connected" },
} as const;

/** One device: a bar with a segment for each lease, and beneath it who holds what. */
export function DeviceCard({ device }: { device: PoolDevice }) {
  const state = states[device.state];
  return (
    <li className="px-4 py-3.5">
      <div className="flex flex-wrap items-baseline justify-between gap-x-4 gap-y-1">
        <h3 className="font-medium">
          {device.name} <span className="font-normal text-ink-2">{device.model}</span>
        </h3>
        <div className="figures flex flex-wrap items-center gap-x-4 text-sm text-ink-2">
          <State tone={state.tone}>{state.word}</State>
          <span>
            {formatAmount(device.leasedMilli)} of 1.0 {device.gpuType} leased
          </span>
          <span>
            {formatBytes(device.usedMemoryBytes)} of {formatBytes(device.memoryBytes)} used
          </span>
          <span>{Math.round(device.computePercent)} % compute</span>
          <DeviceActions device={device} />
        </div>
      </div>
      <div className="mt-2">
        <Meter
          size="lg"
          max={1000}
          segments={device.leases.map((lease) => ({
            key: lease.id,
            value: lease.milli,
            look: lease.borrowed ? "borrowed" : "used",
            title: `${formatAmount(lease.milli)} ${lease.userName}, ${ownerLabel(lease)}`,
          }))}
          label={
            device.leases.length === 0
              ? `${device.name}: nothing leased`
              : `${device.name}: ${device.leases.map((lease) => `${formatAmount(lease.milli)} ${lease.userName}`).join(", ")}`
          }
        />
      </div>
      {device.leases.length > 0 && (
        <ul aria-label={`Leases on ${device.name}`} className="mt-2 divide-y divide-line">
          {device.leases.map((lease) => (
            <li
              key={lease.id}
              className="grid grid-cols-[3.5rem_minmax(0,1fr)_auto] items-center gap-x-3 gap-y-0.5 py-1.5 md:grid-cols-[3.5rem_minmax(0,1.4fr)_minmax(0,1fr)_9rem_5rem_auto]"
            >
              <span className="figures text-right font-medium">{formatAmount(lease.milli)}</span>
              <span className="min-w-0 break-words">
                {lease.userName} <span className="text-ink-2">({lease.teamName})</span>
                <span className="block text-sm text-ink-2">
                  {lease.workspaceName}, {ownerLabel(lease)}
                </span>
              </span>
              <span className="flex flex-wrap items-center gap-x-2 max-md:hidden">
                <LeaseState lease={lease} />
                {lease.borrowed && <Badge tone="warn">borrowed</Badge>}
              </span>
              <span className="figures text-right text-sm max-md:hidden">
                {formatBytes(lease.usedMemoryBytes)}{" "}
                <span className="text-ink-2">of {formatBytes(lease.memoryBytes)}</span>
              </span>
              <span className="text-right text-sm max-md:hidden">
                <Age from={lease.grantedAt} />
              </span>
              <EndLease lease={lease} />
              <span className="figures col-span-2 col-start-2 text-sm text-ink-2 md:hidden">
                {lease.state}, {formatBytes(lease.usedMemoryBytes)} of {formatBytes(lease.memoryBytes)}, held for{" "}
                <Age from={lease.grantedAt} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}
