import { sql } from "drizzle-orm";
import { bigserial, boolean, index, integer, jsonb, pgTable, primaryKey, text, uniqueIndex } from "drizzle-orm/pg-core";
import { bytes, createdAt, id, instant, version } from "./columns.ts";
import { imageVersions } from "./images.ts";
import { workspaceSizes } from "./sizes.ts";
import { teams } from "./teams.ts";
import { users } from "./users.ts";

/**
 * A workspace. The row holds what people want (`desired`) and what the reconciler has seen (`observed`);
 * the broker's reconciler brings the second to the first through the launcher. A pod of a cluster that borrows a GPU
 * by its label has a row, too, so that its leases are charged and shown like others; nobody launches or opens it.
 */
export const workspaces = pgTable(
  "workspaces",
  {
    /** Also its hostname's first label. */
    id: id(),
    name: text("name").notNull(),
    ownerId: text("owner_id")
      .notNull()
      .references(() => users.id),
    teamId: text("team_id")
      .notNull()
      .references(() => teams.id),
    /** Null for a pod: what it runs is not ours. */
    imageVersionId: text("image_version_id").references(() => imageVersions.id),
    /** The cluster's own id of the pod that this is. */
    podUid: text("pod_uid"),
    launcher: text("launcher").notNull(),
    /**
     * What `%gpu attach` takes when no amount is given, as somebody typed it (`typedAmount`); and below it, the type that
     * its profile shows before anything is attached.
     */
    defaultAmount: text("default_amount").notNull().default("0.5"),
    /** How it comes to a GPU. */
    gpuPolicy: text("gpu_policy", { enum: ["never", "ask", "first-use"] })
      .notNull()
      .default("ask"),
    gpuType: text("gpu_type").notNull().default("soft"),
    /** Null with numbers beside it: a size of its own, or one that is no longer offered. */
    sizeId: text("size_id").references(() => workspaceSizes.id, { onDelete: "set null" }),
    /** What its next start gets: the size's, as that is now; null: what its launcher gives. */
    sizeCpuMilli: integer("size_cpu_milli"),
    sizeMemoryBytes: bytes("size_memory_bytes"),
    /** What it was last started with. */
    givenCpuMilli: integer("given_cpu_milli"),
    givenMemoryBytes: bytes("given_memory_bytes"),
    desired: text("desired", { enum: ["running", "stopped", "removed"] }).notNull(),
    observed: text("observed", {
      enum: ["pending", "starting", "running", "stopping", "stopped", "failed", "removed"],
    }).notNull(),
    /** A sentence for a person when `observed` is `failed`. */
    message: text("message"),
    /** Raised by each start, so that a late observation of an older run is ignored. */
    generation: integer("generation").notNull().default(1),
    /** Where the gateway reaches the running server, e.g. `http://127.0.0.1:41234`. Never from user input. */
    endpoint: text("endpoint"),
    /** Token of the running Jupyter server; only the gateway and the broker read it. */
    serverToken: text("server_token"),
    /** SHA-256 of the workspace credential that the lease API accepts. */
    credentialHash: text("credential_hash"),
    /** What the launcher needs to find the running server again after a restart of the broker. */
    handle: jsonb("handle"),
    lastActivityAt: instant("last_activity_at"),
    /** Stops after so long without activity; null follows the team. */
    idleSeconds: integer("idle_seconds"),
    /** Not stopped for being idle before this time: somebody has asked for longer. */
    keepUntil: instant("keep_until"),
    /** When it is started anew elsewhere, because it has to leave where it runs. */
    movesAt: instant("moves_at"),
    /** When a variable was last set or removed: one that started before has the old ones. */
    variablesChangedAt: instant("variables_changed_at"),
    /** How often each of its settings was edited. */
    gpuPolicyVersion: version("gpu_policy_version"),
    idleLimitVersion: version("idle_limit_version"),
    sizeVersion: version("size_version"),
    datasetsVersion: version("datasets_version"),
    /** Processor time of the last half minute (thousandths of a core) and memory of its processes, while it runs. */
    cpuMilli: integer("cpu_milli"),
    memoryBytes: bytes("memory_bytes"),
    startedAt: instant("started_at"),
    stoppedAt: instant("stopped_at"),
    /** For a removed workspace: its files are kept and it can be restored until then. Null: its files are deleted. */
    filesKeptUntil: instant("files_kept_until"),
    createdAt: createdAt(),
  },
  (t) => [
    uniqueIndex("workspaces_owner_name").on(t.ownerId, t.name).where(sql`${t.desired} <> 'removed'`),
    uniqueIndex("workspaces_credential").on(t.credentialHash),
    uniqueIndex("workspaces_pod").on(t.podUid),
    index("workspaces_team").on(t.teamId),
    index("workspaces_size").on(t.sizeId),
    // The latest starts of an environment.
    index("workspaces_started").on(t.imageVersionId, t.startedAt),
  ],
);

/** Who else may come into a workspace: a viewer reads its files, an editor works in it as the owner does. */
export const workspaceCollaborators = pgTable(
  "workspace_collaborators",
  {
    workspaceId: text("workspace_id")
      .notNull()
      .references(() => workspaces.id, { onDelete: "cascade" }),
    userId: text("user_id")
      .notNull()
      .references(() => users.id, { onDelete: "cascade" }),
    role: text("role", { enum: ["viewer", "editor"] }).notNull(),
    version: version(),
    createdAt: createdAt(),
  },
  (t) => [primaryKey({ columns: [t.workspaceId, t.userId] }), index("workspace_collaborators_user").on(t.userId)],
);

/** What a workspace's processes used, one row a round of measuring; old ones are deleted. */
export const workspaceSamples = pgTable(
  "workspace_samples",
  {
    workspaceId: text("workspace_id")
      .notNull()
      .references(() => workspaces.id, { onDelete: "cascade" }),
    at: instant("at").notNull(),
    /** Thousandths of a core since the sample before. */
    cpuMilli: integer("cpu_milli").notNull(),
    memoryBytes: bytes("memory_bytes").notNull(),
  },
  (t) => [primaryKey({ columns: [t.workspaceId, t.at] }), index("workspace_samples_at").on(t.at)],
);

/** Environment variables of a workspace's processes, from its next start on. */
export const workspaceVariables = pgTable(
  "workspace_variables",
  {
    workspaceId: text("workspace_id")
      .notNull()
      .references(() => workspaces.id, { onDelete: "cascade" }),
    name: text("name").notNull(),
    /** A secret's value is never shown again. */
    secret: boolean("secret").notNull(),
    /** Encrypted (server/secrets.ts), secret or not. */
    sealed: text("sealed").notNull(),
    updatedAt: instant("updated_at").notNull(),
    version: version(),
  },
  (t) => [primaryKey({ columns: [t.workspaceId, t.name] })],
);

/** Outgoing connections that a team's policy refused, the newest of each workspace; one row for each host and port. */
export const egressRefusals = pgTable(
  "egress_refusals",
  {
    workspaceId: text("workspace_id")
      .notNull()
      .references(() => workspaces.id, { onDelete: "cascade" }),
    /** A name or an address, as the program asked for it. */
    host: text("host").notNull(),
    port: integer("port").notNull(),
    /** The rule of the last refusal, as a sentence. */
    reason: text("reason").notNull(),
    /** Refused connections since the first one. */
    count: integer("count").notNull(),
    lastAt: instant("last_at").notNull(),
  },
  (t) => [primaryKey({ columns: [t.workspaceId, t.host, t.port] })],
);

/** Steps and log lines of a workspace's life, streamed to its page. */
export const workspaceEvents = pgTable(
  "workspace_events",
  {
    seq: bigserial("seq", { mode: "number" }).primaryKey(),
    workspaceId: text("workspace_id")
      .notNull()
      .references(() => workspaces.id, { onDelete: "cascade" }),
    generation: integer("generation").notNull(),
    at: instant("at").notNull().defaultNow(),
    kind: text("kind", { enum: ["step-started", "step-done", "step-failed", "log"] }).notNull(),
    /** Which step, e.g. `environment`, `sandbox`, `jupyter`, `kernel`. */
    step: text("step").notNull(),
    message: text("message").notNull(),
  },
  (t) => [index("workspace_events_workspace").on(t.workspaceId, t.seq)],
);

/** The gateway's cookie sessions: bound to user, workspace and portal session. */
export const gatewaySessions = pgTable(
  "gateway_sessions",
  {
    id: id(),
    secretHash: text("secret_hash").notNull(),
    userId: text("user_id")
      .notNull()
      .references(() => users.id, { onDelete: "cascade" }),
    workspaceId: text("workspace_id")
      .notNull()
      .references(() => workspaces.id, { onDelete: "cascade" }),
    sessionId: text("session_id").notNull(),
    createdAt: createdAt(),
    expiresAt: instant("expires_at").notNull(),
    revokedAt: instant("revoked_at"),
  },
  (t) => [uniqueIndex("gateway_sessions_secret").on(t.secretHash)],
);
