import { sql } from "drizzle-orm";
import { bigserial, index, integer, jsonb, pgTable, text, uniqueIndex } from "drizzle-orm/pg-core";
import { bytes, createdAt, id, instant, smActivity } from "./columns.ts";
import { gpuServers, gpus } from "./pool.ts";
import { teams } from "./teams.ts";
import { users } from "./users.ts";
import { workspaces } from "./workspaces.ts";

/** What asked for a lease: a process *start*, so that a reused pid is not mistaken for its owner. */
export type LeaseOwner = {
  kind: "kernel" | "process" | "workspace";
  /** Jupyter's kernel id, when kind is `kernel`. */
  kernelId?: string;
  pid: number;
  /** Field 22 of /proc/PID/stat: start time in clock ticks after boot. */
  startTime: number;
  /** What people read, e.g. `kmeans.ipynb`. */
  label?: string;
};

/** A kernel and the blocks of its grid (server/contracts/control.ts). */
type RunningKernel = { kernel: string; blocksDone: number; blocks: number; seconds: number };

/** What a request needs of a device's labels (server/scheduler/types.ts). */
type Needs = { zone?: string; maxRttUs?: number; minCudaVersion?: number; minDriverVersion?: string };

/** The queue, and the memory of what was asked: one row a request, found again by its idempotency key. */
export const leaseRequests = pgTable(
  "lease_requests",
  {
    id: id(),
    workspaceId: text("workspace_id")
      .notNull()
      .references(() => workspaces.id, { onDelete: "cascade" }),
    teamId: text("team_id")
      .notNull()
      .references(() => teams.id),
    userId: text("user_id")
      .notNull()
      .references(() => users.id),
    /** The client's idempotency key; the same key in one workspace is the same request. */
    idempotencyKey: text("idempotency_key").notNull(),
    gpuType: text("gpu_type").notNull(),
    milli: integer("milli").notNull(),
    memoryBytes: bytes("memory_bytes").notNull(),
    /** Only inside the guaranteed quota; such a lease is never taken back. */
    guaranteedOnly: integer("guaranteed_only").notNull().default(0),
    /** The device that still holds this owner's parked memory, when there is one. */
    pinnedGpuId: text("pinned_gpu_id").references(() => gpus.id),
    owner: jsonb("owner").$type<LeaseOwner>().notNull(),
    state: text("state", { enum: ["queued", "granted", "refused", "cancelled", "expired"] }).notNull(),
    /** Structured reason of the last decision (see server/contracts/lease.ts). */
    reason: jsonb("reason"),
    createdAt: createdAt(),
    /** A queued request whose client has stopped asking is dropped. */
    lastPolledAt: instant("last_polled_at").notNull(),
    decidedAt: instant("decided_at"),
    /** How long the client said it would wait; the request expires then. */
    waitUntil: instant("wait_until").notNull(),
    /** How long the lease is wanted, seconds. */
    forSeconds: integer("for_seconds").notNull().default(14_400),
    /** Order inside the team: larger is earlier. */
    rank: integer("rank").notNull().default(0),
    /** A notebook is interactive, a program of its own is batch; a type's calendar may take one of them only. */
    kind: text("kind", { enum: ["interactive", "batch"] })
      .notNull()
      .default("interactive"),
    /** How many devices the client can map. */
    maxDevices: integer("max_devices").notNull().default(1),
    /** What it needs of a device: zone, distance, driver. */
    needs: jsonb("needs").$type<Needs>(),
    /** Devices that are kept for it while room is made there. */
    keptGpuIds: jsonb("kept_gpu_ids").$type<string[]>(),
  },
  (t) => [
    uniqueIndex("lease_requests_key").on(t.workspaceId, t.idempotencyKey),
    index("lease_requests_queue").on(t.gpuType, t.state, t.createdAt),
    // What a workspace waits for, whatever it has asked for in its life.
    index("lease_requests_waiting").on(t.workspaceId).where(sql`${t.state} = 'queued'`),
    // Waiting times that are not rolled up are read from an index alone: of everybody, of a person, of a workspace.
    index("lease_requests_granted")
      .on(t.decidedAt, t.createdAt, t.gpuType, t.teamId)
      .where(sql`${t.state} = 'granted'`),
    index("lease_requests_granted_to")
      .on(t.userId, t.decidedAt, t.createdAt, t.gpuType, t.teamId)
      .where(sql`${t.state} = 'granted'`),
    index("lease_requests_granted_in")
      .on(t.workspaceId, t.decidedAt, t.createdAt, t.gpuType, t.teamId)
      .where(sql`${t.state} = 'granted'`),
  ],
);

/** One borrowing, from grant to end. */
export const leases = pgTable(
  "leases",
  {
    id: id(),
    requestId: text("request_id")
      .notNull()
      .references(() => leaseRequests.id, { onDelete: "cascade" }),
    workspaceId: text("workspace_id").notNull(),
    teamId: text("team_id")
      .notNull()
      .references(() => teams.id),
    userId: text("user_id")
      .notNull()
      .references(() => users.id),
    gpuId: text("gpu_id")
      .notNull()
      .references(() => gpus.id),
    serverId: text("server_id")
      .notNull()
      .references(() => gpuServers.id),
    gpuType: text("gpu_type").notNull(),
    /** Charge: max(compute, memory), thousandths of a GPU. */
    milli: integer("milli").notNull(),
    memoryBytes: bytes("memory_bytes").notNull(),
    /** Whether it fits inside the team's guaranteed quota at grant. */
    borrowed: integer("borrowed").notNull().default(0),
    /** Asked for with `--guaranteed`: never taken back. */
    guaranteedOnly: integer("guaranteed_only").notNull().default(0),
    /** A lease of several GPUs has one row a device; the first has ordinal 0, and all begin and end together. */
    ordinal: integer("ordinal").notNull().default(0),
    /** It will be taken back: for the sake of which request, since when it is told, and when it is released. */
    noticeFor: text("notice_for"),
    noticeAt: instant("notice_at"),
    releaseAt: instant("release_at"),
    owner: jsonb("owner").$type<LeaseOwner>().notNull(),
    /** granted: not yet claimed by a connection; active; unreachable: gpud silent; ending: gpud told, not yet done; ended. */
    state: text("state", { enum: ["granted", "active", "unreachable", "ending", "ended"] }).notNull(),
    /** The gpud epoch it was granted under. */
    epoch: integer("epoch").notNull(),
    grantedAt: instant("granted_at").notNull(),
    claimedAt: instant("claimed_at"),
    /** Start of the one extra chance to claim that a break of the brokers calls for (server/broker/liveness.ts). */
    claimChanceAt: instant("claim_chance_at"),
    /** Last sign of life of the owner: a report, a request, or an open connection. */
    ownerSeenAt: instant("owner_seen_at").notNull(),
    /** Set while no client process is connected to gpud. */
    disconnectedAt: instant("disconnected_at"),
    expiresAt: instant("expires_at").notNull(),
    /** When gpud was first told to end it, and whether it keeps the memory parked. */
    endingAt: instant("ending_at"),
    endMode: text("end_mode", { enum: ["park", "kill"] }),
    endedAt: instant("ended_at"),
    endReason: text("end_reason", {
      enum: [
        "given back",
        "idle",
        "time up",
        "taken back",
        "ended by an admin",
        "owner gone",
        "never used",
        "server lost",
        "workspace stopped",
      ],
    }),
    /** Free text for people: who ended it, what was parked. */
    endNote: text("end_note"),
    /** Bytes that gpud parked in host memory when the lease ended. */
    parkedBytes: bytes("parked_bytes").notNull().default(0),
    /** Latest usage that gpud reported, and when its GPU last worked. */
    usedMemoryBytes: bytes("used_memory_bytes").notNull().default(0),
    gpuTimeUs: bytes("gpu_time_us").notNull().default(0),
    ...smActivity(),
    /** Time on the device while others wanted it too, and what the lease's share of such time was. */
    deliveredUs: bytes("delivered_us").notNull().default(0),
    promisedUs: bytes("promised_us").notNull().default(0),
    calls: bytes("calls").notNull().default(0),
    usageAt: instant("usage_at"),
    /** The kernel that runs now, if that has run for a while. */
    running: jsonb("running").$type<RunningKernel>(),
  },
  (t) => [
    uniqueIndex("leases_request").on(t.requestId, t.ordinal),
    index("leases_gpu").on(t.gpuId, t.state),
    index("leases_team").on(t.teamId, t.state),
    index("leases_workspace").on(t.workspaceId, t.state),
    // What is over is most of the table, and no round looks at it.
    index("leases_open").on(t.gpuType).where(sql`${t.state} <> 'ended'`),
    index("leases_ending").on(t.serverId).where(sql`${t.state} = 'ending'`),
  ],
);

/** The ledger: every stretch of time in which a lease held an amount. Quota, budget and chargeback read it. */
export const leaseIntervals = pgTable(
  "lease_intervals",
  {
    seq: bigserial("seq", { mode: "number" }).primaryKey(),
    leaseId: text("lease_id")
      .notNull()
      .references(() => leases.id, { onDelete: "cascade" }),
    teamId: text("team_id").notNull(),
    userId: text("user_id").notNull(),
    gpuId: text("gpu_id").notNull(),
    gpuType: text("gpu_type").notNull(),
    milli: integer("milli").notNull(),
    startedAt: instant("started_at").notNull(),
    endedAt: instant("ended_at"),
  },
  (t) => [
    index("lease_intervals_team").on(t.teamId, t.startedAt),
    index("lease_intervals_lease").on(t.leaseId),
    // What a span of time has to do with: it ended after the span began, or has not ended.
    index("lease_intervals_ended").on(t.endedAt),
  ],
);

/** What gpud measured lately, one row a lease and sample; their sums by the hour are kept in lease_work. */
export const usageSamples = pgTable(
  "usage_samples",
  {
    seq: bigserial("seq", { mode: "number" }).primaryKey(),
    leaseId: text("lease_id")
      .notNull()
      .references(() => leases.id, { onDelete: "cascade" }),
    at: instant("at").notNull(),
    memoryBytes: bytes("memory_bytes").notNull(),
    /** GPU time since the sample before, microseconds. */
    gpuTimeUs: bytes("gpu_time_us").notNull(),
    ...smActivity(),
    /** Of it while others wanted the device too, and what was promised then, microseconds. */
    deliveredUs: bytes("delivered_us").notNull().default(0),
    promisedUs: bytes("promised_us").notNull().default(0),
    calls: bytes("calls").notNull(),
  },
  (t) => [
    index("usage_samples_lease").on(t.leaseId, t.at),
    // They are written in order and swept in order.
    index("usage_samples_at").using("brin", t.at),
  ],
);

/** Kernels and processes that a workspace's server extension last reported alive. */
export const workspaceOwners = pgTable("workspace_owners", {
  workspaceId: text("workspace_id")
    .primaryKey()
    .references(() => workspaces.id, { onDelete: "cascade" }),
  reportedAt: instant("reported_at").notNull(),
  alive: jsonb("alive").$type<LeaseOwner[]>().notNull(),
});
