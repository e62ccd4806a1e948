/** The devices of one GPU type as the scheduler sees them. */
import type { Device } from "#server/scheduler/types.ts";
import type { DeviceRow } from "./world-rows.ts";

/** One device from its row. */
export function deviceFrom(row: DeviceRow): Device {
  const { id, name, serverId, serverName, memoryBytes, linkGroup, zone, rttUs, cudaVersion, driverVersion } = row;
  return {
    ...{ id, name, serverId, serverName, memoryBytes },
    state: deviceState(row),
    ...(linkGroup === null ? {} : { linkGroup }),
    ...(zone === null ? {} : { zone }),
    ...(rttUs === null ? {} : { rttUs }),
    ...(cudaVersion === null ? {} : { cudaVersion }),
    ...(driverVersion === null ? {} : { driverVersion }),
  };
}

function deviceState({ state, drained, serverState }: DeviceRow): Device["state"] {
  if (serverState === "removed") return "gone";
  if (serverState === "lost" || serverState === "joining" || state === "lost") return "away";
  return drained || serverState === "draining" ? "draining" : "open";
}
