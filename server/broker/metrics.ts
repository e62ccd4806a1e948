/** Figures for Prometheus. Those about leases are read from the tables when asked for: every broker tells the same. */
import { count, eq, ne, sum } from "drizzle-orm";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { Database } from "#server/db/client.ts";
import { gpuServers, leaseRequests, leases } from "#server/db/schema/index.ts";
import { strandedNow } from "#server/services/gpu-server/stranded-now.ts";
import { recentUse } from "#server/services/utilisation/recent-use.ts";
import type { Observed } from "./router.ts";

export type Metrics = {
  contentType: string;
  read: () => Promise<string>;
  /** A request for a lease was answered. */
  decided: (state: string) => void;
  observed: (observed: Observed) => void;
};

export function createMetrics(db: Database, connectedServers: () => number): Metrics {
  const registers = [new Registry()];
  const [registry] = registers as [Registry];
  collectDefaultMetrics({ register: registry });

  const decisions = new Counter({
    name: "sluice_lease_decisions_total",
    help: "Answers to requests for a lease, by state.",
    labelNames: ["state"],
    registers,
  });
  const requests = new Histogram({
    name: "sluice_broker_request_seconds",
    help: "Time from the request to the answer; long polls include their wait.",
    labelNames: ["method", "route", "status"],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30],
    registers,
  });
  new Gauge({
    name: "sluice_control_connections",
    help: "gpuds connected to this broker.",
    registers,
    collect() {
      this.set(connectedServers());
    },
  });
  new Gauge({
    name: "sluice_leased_gpus",
    help: "GPUs on lease, by GPU type and state of the lease.",
    labelNames: ["gpu_type", "state"],
    registers,
    async collect() {
      const rows = await db
        .select({ gpuType: leases.gpuType, state: leases.state, milli: sum(leases.milli).mapWith(Number) })
        .from(leases)
        .where(ne(leases.state, "ended"))
        .groupBy(leases.gpuType, leases.state);
      this.reset();
      for (const row of rows) this.set({ gpu_type: row.gpuType, state: row.state }, row.milli / 1000);
    },
  });
  new Gauge({
    name: "sluice_lease_queue_length",
    help: "Requests that wait, by GPU type.",
    labelNames: ["gpu_type"],
    registers,
    async collect() {
      const rows = await db
        .select({ gpuType: leaseRequests.gpuType, n: count() })
        .from(leaseRequests)
        .where(eq(leaseRequests.state, "queued"))
        .groupBy(leaseRequests.gpuType);
      this.reset();
      for (const row of rows) this.set({ gpu_type: row.gpuType }, row.n);
    },
  });
  new Gauge({
    name: "sluice_stranded_gpus",
    help: "GPUs free on devices that take leases, in pieces that fit none of those who wait; 0 while nobody waits. By GPU type.",
    labelNames: ["gpu_type"],
    registers,
    async collect() {
      const stranded = await strandedNow(db, new Date());
      this.reset();
      for (const [gpuType, milli] of stranded) this.set({ gpu_type: gpuType }, milli / 1000);
    },
  });
  new Gauge({
    name: "sluice_used_gpus",
    help: "Of the GPUs on lease those that worked, on average of the last minute, by GPU type and whether it is known how much of their multiprocessors did.",
    labelNames: ["gpu_type", "sm_activity"],
    registers,
    async collect() {
      const rows = await recentUse(db, new Date());
      this.reset();
      for (const { gpuType, usedKnown, usedUnknown } of rows) {
        this.set({ gpu_type: gpuType, sm_activity: "known" }, usedKnown);
        if (usedUnknown > 0) this.set({ gpu_type: gpuType, sm_activity: "unknown" }, usedUnknown);
      }
    },
  });
  new Gauge({
    name: "sluice_effective_gpus",
    help: "Of the GPUs used the part of their multiprocessors that had work (SM active), on average of the last minute, by GPU type and how it is known: counted by the device, or estimated, at most, from the time in which any kernel ran.",
    labelNames: ["gpu_type", "source"],
    registers,
    async collect() {
      const rows = await recentUse(db, new Date());
      this.reset();
      for (const { gpuType, usedKnown, counted, estimated } of rows) {
        if (usedKnown === 0 || counted > 0) this.set({ gpu_type: gpuType, source: "counted" }, counted);
        if (estimated > 0) this.set({ gpu_type: gpuType, source: "estimated" }, estimated);
      }
    },
  });
  new Gauge({
    name: "sluice_gpu_servers",
    help: "GPU servers, by state.",
    labelNames: ["state"],
    registers,
    async collect() {
      const rows = await db.select({ state: gpuServers.state, n: count() }).from(gpuServers).groupBy(gpuServers.state);
      this.reset();
      for (const row of rows) this.set({ state: row.state }, row.n);
    },
  });

  return {
    contentType: registry.contentType,
    read: async () => await registry.metrics(),
    decided: (state) => decisions.inc({ state }),
    observed: ({ method, route, status, seconds }) =>
      requests.observe({ method, route, status: String(status) }, seconds),
  };
}
