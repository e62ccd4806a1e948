"use client";

import { plural } from "#components/format.ts";
import { State, type Tone } from "#components/ui/state.tsx";
import { RelativeTime } from "#components/ui/time.tsx";
import type { GpuServerView, PoolDevice } from "#server/contracts/gpu-server.ts";
import { DeviceCard } from "./device-card.tsx";
import { ServerActions } from "./server-actions.tsx";
import { TeamBar } from "./team-bar.tsx";
import type { TeamKey } from "./team-key.ts";

const tones: Record<GpuServerView["state"], Tone> = {
  joining: "busy",
  online: "ok",
  lost: "bad",
  draining: "warn",
  removed: "idle",
};

/** A GPU server with its devices. A component of the browser's: of hundreds of leases a page carries what they are, not how they look. */
export function ServerCard({
  server,
  devices,
  teamKey,
  mayChange,
}: {
  server: GpuServerView;
  devices: PoolDevice[];
  teamKey: TeamKey;
  /** Whoever looks may drain it and say what it is. */
  mayChange: boolean;
}) {
  return (
    <section aria-label={`GPU server ${server.name}`} className="mb-4 rounded-lg border border-line bg-surface">
      <div className="flex items-start justify-between gap-x-4 border-b border-line px-4 py-2.5">
        <div className="flex min-w-0 flex-wrap items-baseline gap-x-4 gap-y-0.5">
          <h2 className="font-semibold">{server.name}</h2>
          <State tone={tones[server.state]}>{server.state}</State>
          <span className="text-sm text-ink-2">
            {plural(server.deviceCount, "device")}
            {server.dataAddress && <>, {server.dataAddress}</>}
            {server.zone && <>, zone {server.zone}</>}
            {server.rttUs !== null && <>, {(server.rttUs / 1000).toFixed(1)} ms away</>}
            {server.lastSeenAt && server.state !== "online" && (
              <>
                , last heard <RelativeTime at={server.lastSeenAt} />
              </>
            )}
          </span>
        </div>
        {mayChange && <ServerActions server={server} />}
      </div>
      {devices.length > 1 && (
        <div className="border-b border-line px-4 py-2.5">
          <TeamBar
            size="md"
            teams={devices.flatMap((device) => device.teams)}
            teamKey={teamKey}
            max={devices.length * 1000}
            what={`${server.name} by team`}
          />
        </div>
      )}
      {devices.length === 0 ? (
        <p className="px-4 py-3 text-ink-2">
          {server.state === "joining" ? "It has joined and not reported its devices yet." : "It reports no device."}
        </p>
      ) : (
        <ul className="divide-y divide-line">
          {devices.map((device) => (
            <DeviceCard key={device.id} {...{ device, teamKey, mayChange }} />
          ))}
        </ul>
      )}
    </section>
  );
}
