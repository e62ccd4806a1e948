import { sql } from "drizzle-orm";
import { bigserial, boolean, index, integer, jsonb, pgTable, text, uniqueIndex } from "drizzle-orm/pg-core";
import { bytes, createdAt, id, instant, version } from "./columns.ts";

/** A host that runs gpud. */
export const gpuServers = pgTable(
  "gpu_servers",
  {
    id: id(),
    name: text("name").notNull(),
    /** Ed25519 public key of gpud, base64url; its only identity. */
    publicKey: text("public_key").notNull(),
    /** SHA-256 of the TLS certificate (base64url) that clients pin; null while it listens on loopback only. */
    tlsFingerprint: text("tls_fingerprint"),
    /** Where clients reach the data plane, e.g. `tcp://127.0.0.1:7010` or `tls://gpu-1.example:7010`. */
    dataAddress: text("data_address"),
    version: text("version"),
    state: text("state", { enum: ["joining", "online", "lost", "draining", "removed"] }).notNull(),
    /** Raised each time gpud is declared lost, so that what it held then is fenced. */
    epoch: integer("epoch").notNull().default(1),
    lastSeenAt: instant("last_seen_at"),
    /** Where it stands, as an admin says; and how far away it is, as the broker measured, microseconds. */
    zone: text("zone"),
    zoneVersion: version("zone_version"),
    rttUs: integer("rtt_us"),
    /** The cluster's node that it runs on, and since when it is drained because that node is cordoned, or its gpud is to be replaced. */
    nodeName: text("node_name"),
    cordonedAt: instant("cordoned_at"),
    /** Since when it takes no new leases; what `state` tells while it is connected, and kept while it is not. */
    drainedAt: instant("drained_at"),
    /** It is drained for its node's sake alone, and takes leases again with the node; not what an admin has drained. */
    drainedByNode: boolean("drained_by_node").notNull().default(false),
    /** The cluster's own id of the pod that it runs in, by its token when it joined and at each connection. */
    podUid: text("pod_uid"),
    createdAt: createdAt(),
  },
  (t) => [
    uniqueIndex("gpu_servers_public_key").on(t.publicKey),
    // Of one pod there is one server at a time: its token is worth no more.
    uniqueIndex("gpu_servers_pod").on(t.podUid).where(sql`${t.state} <> 'removed'`),
  ],
);

/** A device in the pool. */
export const gpus = pgTable(
  "gpus",
  {
    id: id(),
    serverId: text("server_id")
      .notNull()
      .references(() => gpuServers.id, { onDelete: "cascade" }),
    /** The device's own UUID as gpud reports it. */
    uuid: text("uuid").notNull(),
    /** A short name for people, e.g. `soft-0`. */
    name: text("name").notNull(),
    /** The model or kind that quotas name: `soft`, `h200`, `a100`. */
    gpuType: text("gpu_type").notNull(),
    model: text("model").notNull(),
    computeCapability: text("compute_capability").notNull(),
    kind: text("kind", { enum: ["shared", "mig", "vgpu", "passthrough"] })
      .notNull()
      .default("shared"),
    /** Memory that leases may use: what the driver's and gpud's reserve leave. */
    memoryBytes: bytes("memory_bytes").notNull(),
    /** lost: its gpud does not report it any more. */
    state: text("state", { enum: ["active", "lost"] }).notNull(),
    /** Since when it takes no new leases by itself, whatever its server does. */
    drainedAt: instant("drained_at"),
    /** Devices of one server in one group reach each other directly (NVLink). */
    linkGroup: text("link_group"),
    /** Device attributes recorded by gpud; what a client answers before anything is attached. */
    profile: jsonb("profile").notNull(),
    createdAt: createdAt(),
  },
  (t) => [uniqueIndex("gpus_server_uuid").on(t.serverId, t.uuid)],
);

/** The state of each device over time: what is not leased is idle, draining or lost. A change closes one and opens one. */
export const deviceIntervals = pgTable(
  "device_intervals",
  {
    seq: bigserial("seq", { mode: "number" }).primaryKey(),
    gpuId: text("gpu_id")
      .notNull()
      .references(() => gpus.id, { onDelete: "cascade" }),
    state: text("state", { enum: ["open", "draining", "lost"] }).notNull(),
    startedAt: instant("started_at").notNull(),
    endedAt: instant("ended_at"),
  },
  (t) => [index("device_intervals_gpu").on(t.gpuId, t.startedAt)],
);
