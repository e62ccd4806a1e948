import type { PoolDevice } from "#server/contracts/gpu-server.ts";
import type { gpuServers, gpus } from "#server/db/schema/index.ts";

/** Whether a device takes leases, as its server's state and its own say. */
export function poolState(
  device: (typeof gpus.$inferSelect)["state"],
  server: (typeof gpuServers.$inferSelect)["state"],
): PoolDevice["state"] {
  if (server === "lost" || server === "joining" || device === "lost") return "lost";
  return server === "draining" ? "draining" : device;
}
