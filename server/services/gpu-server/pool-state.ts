import type { PoolDevice } from "#server/contracts/gpu-server.ts";
import type { gpuServers, gpus } from "#server/db/schema/index.ts";

/** Whether a device takes leases, as its server's state and its own say. */
export function poolState(
  device: Pick<typeof gpus.$inferSelect, "state" | "drainedAt">,
  server: (typeof gpuServers.$inferSelect)["state"],
): PoolDevice["state"] {
  if (server === "lost" || server === "joining" || device.state === "lost") return "lost";
  return server === "draining" || device.drainedAt !== null ? "draining" : "active";
}
