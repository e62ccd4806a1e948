/** What shapes quotas over time: policies, calendars, reservations, requests for more, stop switches, past use. */
import { foreignKey, index, integer, pgTable, primaryKey, text, unique } from "drizzle-orm/pg-core";
import { bytes, createdAt, id, instant, version } from "./columns.ts";
import { memberships, teams } from "./teams.ts";
import { users } from "./users.ts";

const teamId = () =>
  text("team_id")
    .notNull()
    .references(() => teams.id, { onDelete: "cascade" });

/** Rules of one team, whatever the GPU type; what is null follows the installation. */
export const teamPolicies = pgTable("team_policies", {
  teamId: teamId().primaryKey(),
  maxLeaseSeconds: integer("max_lease_seconds"),
  /** A lease without GPU work for so long is warned, parked and released. */
  idleSeconds: integer("idle_seconds"),
  /** A workspace without activity for so long is stopped. */
  workspaceIdleSeconds: integer("workspace_idle_seconds"),
  /** any; own-team: shares a card with nobody else; whole-cards: takes whole cards only. */
  coTenancy: text("co_tenancy", { enum: ["any", "own-team", "whole-cards"] })
    .notNull()
    .default("any"),
  /** none: a lease uses what others on its device leave idle; share: never more than its share, even alone. */
  computeCeiling: text("compute_ceiling", { enum: ["none", "share"] })
    .notNull()
    .default("none"),
  /** A lease of the team is not taken back before it has run so long. */
  minRunSeconds: integer("min_run_seconds"),
  /** From the first word to the release of a lease that is taken back. */
  noticeSeconds: integer("notice_seconds"),
  /** A kernel that runs for so long is reported; 0: none is. */
  longKernelSeconds: integer("long_kernel_seconds"),
  /** Who of the team may choose a workspace's size freely, and how large; null follows the installation. */
  customSizes: text("custom_sizes", { enum: ["nobody", "leads", "everybody"] }),
  maxCpuMilli: integer("max_cpu_milli"),
  maxMemoryBytes: bytes("max_memory_bytes"),
  version: version(),
});

/** A quota that differs by weekday and hour: minutes since Monday 00:00 by the installation's clocks. */
export const quotaWindows = pgTable(
  "quota_windows",
  {
    id: id(),
    teamId: teamId(),
    gpuType: text("gpu_type").notNull(),
    fromMinute: integer("from_minute").notNull(),
    toMinute: integer("to_minute").notNull(),
    guaranteedMilli: integer("guaranteed_milli").notNull(),
    limitMilli: integer("limit_milli").notNull(),
  },
  (t) => [index("quota_windows_type").on(t.gpuType)],
);

/** In this window a GPU type takes one kind of work only. */
export const kindWindows = pgTable(
  "kind_windows",
  {
    id: id(),
    gpuType: text("gpu_type").notNull(),
    fromMinute: integer("from_minute").notNull(),
    toMinute: integer("to_minute").notNull(),
    kind: text("kind", { enum: ["interactive", "batch"] }).notNull(),
  },
  (t) => [index("kind_windows_type").on(t.gpuType)],
);

/** How often a calendar was saved: that of a team's quota, or, without a team, that of the GPU type itself. */
export const calendarVersions = pgTable(
  "calendar_versions",
  {
    gpuType: text("gpu_type").notNull(),
    teamId: text("team_id").references(() => teams.id, { onDelete: "cascade" }),
    version: version(),
  },
  (t) => [unique("calendar_versions_one").on(t.gpuType, t.teamId).nullsNotDistinct()],
);

/** A part of the pool that a team, or one member of it, has for a time, on top of the team's guarantee. */
export const reservations = pgTable(
  "reservations",
  {
    id: id(),
    teamId: teamId(),
    gpuType: text("gpu_type").notNull(),
    milli: integer("milli").notNull(),
    unitMilli: integer("unit_milli").notNull(),
    /** The only member who may use it; null: all of the team. It goes with the membership. */
    userId: text("user_id"),
    startsAt: instant("starts_at").notNull(),
    endsAt: instant("ends_at").notNull(),
    note: text("note").notNull().default(""),
    /** Shared by those that were reserved together, week by week: the id of the first; null: it is alone. */
    seriesId: text("series_id"),
    createdAt: createdAt(),
  },
  (t) => [
    index("reservations_type").on(t.gpuType, t.endsAt),
    foreignKey({
      name: "reservations_member",
      columns: [t.teamId, t.userId],
      foreignColumns: [memberships.teamId, memberships.userId],
    }).onDelete("cascade"),
  ],
);

/** A member asks for more; approved, it is on top of the quota until it ends alone. */
export const quotaRequests = pgTable(
  "quota_requests",
  {
    id: id(),
    teamId: teamId(),
    gpuType: text("gpu_type").notNull(),
    userId: text("user_id")
      .notNull()
      .references(() => users.id, { onDelete: "cascade" }),
    guaranteedMilli: integer("guaranteed_milli").notNull(),
    limitMilli: integer("limit_milli").notNull(),
    startsAt: instant("starts_at").notNull(),
    endsAt: instant("ends_at").notNull(),
    reason: text("reason").notNull(),
    state: text("state", { enum: ["asked", "approved", "refused"] }).notNull(),
    decidedBy: text("decided_by").references(() => users.id, { onDelete: "set null" }),
    decidedAt: instant("decided_at"),
    createdAt: createdAt(),
  },
  (t) => [index("quota_requests_type").on(t.gpuType, t.state, t.endsAt)],
);

/** No new leases: for all, for a team, or for a person, until it is lifted. */
export const stopSwitches = pgTable("stop_switches", {
  id: id(),
  scope: text("scope", { enum: ["all", "team", "user"] }).notNull(),
  subjectId: text("subject_id"),
  reason: text("reason").notNull(),
  createdAt: createdAt(),
  liftedAt: instant("lifted_at"),
});

/** Decayed use above the guarantee, thousandths of a GPU times seconds, as of a time. */
export const teamUsage = pgTable(
  "team_usage",
  {
    teamId: teamId(),
    gpuType: text("gpu_type").notNull(),
    amount: bytes("amount").notNull(),
    at: instant("at").notNull(),
  },
  (t) => [primaryKey({ columns: [t.teamId, t.gpuType] })],
);
