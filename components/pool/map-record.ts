/** What the pool's map needs of a server: so short that a thousand devices are a few kilobytes. */
import type { PoolMapServer } from "#server/contracts/gpu-server.ts";

/** What the strength of a cell says. */
export type MapShows = "leased" | "compute";

/**
 * `cells` has a character for each device: `0` to `4` for nothing, up to a quarter, a half, three quarters, and more;
 * `d` it drains, `l` its server is not connected.
 */
export type MapRecord = Pick<PoolMapServer, "id" | "name" | "state" | "teams"> & { cells: string; leasedMilli: number };

/** The record of a server: pure. */
export function mapRecord(server: PoolMapServer, shows: MapShows): MapRecord {
  return {
    ...{ id: server.id, name: server.name, state: server.state, teams: server.teams },
    cells: server.devices.map((device) => cellOf(device, shows)).join(""),
    leasedMilli: server.devices.reduce((sum, device) => sum + device.leasedMilli, 0),
  };
}

function cellOf(device: PoolMapServer["devices"][number], shows: MapShows): string {
  if (device.state === "lost") return "l";
  if (device.state === "draining") return "d";
  const part = shows === "leased" ? device.leasedMilli / 1000 : device.computePercent / 100;
  return String(Math.min(4, Math.ceil(part * 4)));
}
