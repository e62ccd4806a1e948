import { formatAmount, formatBytes } from "#components/format.ts";
import { EndLease } from "#components/lease/end-lease.tsx";
import { LeaseState } from "#components/lease/lease-state.tsx";
import { ownerLabel } from "#components/lease/owner-label.ts";
import { Swatch } from "#components/ui/meter.tsx";
import { Badge, State } from "#components/ui/state.tsx";
import { Age } from "#components/ui/time.tsx";
import type { PoolDevice } from "#server/contracts/gpu-server.ts";
import { DeviceActions } from "./device-actions.tsx";
import { KINDS } from "./kinds.ts";
import { TeamBar } from "./team-bar.tsx";
import type { TeamKey } from "./team-key.ts";

const states = {
  active: { tone: "ok", word: "takes leases" },
  draining: { tone: "warn", word: "draining" },
  lost: { tone: "bad", word: "server not connected" },
} as const;

type Props = {
  device: PoolDevice;
  teamKey: TeamKey;
  /** Whoever looks may drain it and say what it is. */
  mayChange: boolean;
};

/** One device: a bar by team, and beneath it who holds what; of teams that one does not lead, how much alone. */
export function DeviceCard({ device, teamKey, mayChange }: Props) {
  const state = states[device.state];
  const lookOf = (teamId: string) => teamKey.find((each) => each.teamId === teamId)?.look ?? "rest";
  const shown = new Set(device.leases.map(({ teamId }) => teamId));
  const unnamed = device.teams.filter(({ teamId }) => !shown.has(teamId));
  return (
    <li className="px-4 py-3.5">
      <div className="flex flex-wrap items-baseline justify-between gap-x-4 gap-y-1">
        <h3 className="font-medium">
          {device.name} <span className="font-normal text-ink-2">{device.model}</span>
        </h3>
        <div className="figures flex flex-wrap items-center gap-x-4 text-sm text-ink-2">
          <State tone={state.tone}>{state.word}</State>
          <span>{KINDS[device.kind].word}</span>
          {device.linkGroup !== null && <span>NVLink group {device.linkGroup}</span>}
          <span>
            {formatAmount(device.leasedMilli)} of 1.0 {device.gpuType} leased
          </span>
          <span>
            {formatBytes(device.usedMemoryBytes)} of {formatBytes(device.memoryBytes)} used
          </span>
          <span>{Math.round(device.computePercent)} % compute</span>
          {mayChange && <DeviceActions device={device} />}
        </div>
      </div>
      <div className="mt-2">
        <TeamBar size="lg" teams={device.teams} teamKey={teamKey} max={1000} what={device.name} />
      </div>
      {device.teams.length > 0 && (
        <ul aria-label={`Leases on ${device.name}`} className="mt-2 divide-y divide-line">
          {device.leases.map((lease) => (
            <li
              key={lease.id}
              className="grid grid-cols-[3.5rem_minmax(0,1fr)_auto] items-center gap-x-3 gap-y-0.5 py-1.5 md:grid-cols-[3.5rem_minmax(0,1.4fr)_minmax(0,1fr)_9rem_5rem_auto]"
            >
              <span className="figures text-right font-medium">{formatAmount(lease.milli)}</span>
              <span className="min-w-0 break-words">
                {lease.userName}{" "}
                <span className="text-ink-2">
                  (<Swatch look={lookOf(lease.teamId)} /> {lease.teamName})
                </span>
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
          {unnamed.map(({ teamId, teamName, milli }) => (
            <li key={teamId} className="grid grid-cols-[3.5rem_minmax(0,1fr)] gap-x-3 py-1.5">
              <span className="figures text-right font-medium">{formatAmount(milli)}</span>
              <span className="text-ink-2">
                <Swatch look={lookOf(teamId)} /> team {teamName}
              </span>
            </li>
          ))}
        </ul>
      )}
    </li>
  );
}
