import { bigserial, index, jsonb, pgTable, text } from "drizzle-orm/pg-core";
import { createdAt, instant } from "./columns.ts";

/** Who did what. Append-only: the database refuses updates and deletes (a trigger in the migrations). */
export const auditEvents = pgTable(
  "audit_events",
  {
    seq: bigserial("seq", { mode: "number" }).primaryKey(),
    at: instant("at").notNull().defaultNow(),
    /** `user`, `workspace`, `gpud` or `system`, and its id. */
    actorKind: text("actor_kind", { enum: ["user", "workspace", "gpud", "system"] }).notNull(),
    actorId: text("actor_id"),
    /** The operation, `noun.verb`, e.g. `workspace.create`. */
    action: text("action").notNull(),
    /** What it was done to, e.g. `ws-…`. */
    subject: text("subject"),
    teamId: text("team_id"),
    detail: jsonb("detail").notNull(),
    traceId: text("trace_id"),
    /** Where a person's request came from, and the access token that it came with. */
    address: text("address"),
    tokenId: text("token_id"),
  },
  (t) => [
    index("audit_events_at").on(t.at),
    index("audit_events_subject").on(t.subject),
    index("audit_events_actor").on(t.actorId, t.seq),
    index("audit_events_team").on(t.teamId, t.seq),
    // For one operation, and for all of a noun.
    index("audit_events_action").on(t.action.op("text_pattern_ops"), t.seq),
  ],
);

/** Steps of getting this installation ready (builds, environments), shown on the first page. */
export const setupSteps = pgTable("setup_steps", {
  id: text("id").primaryKey(),
  title: text("title").notNull(),
  state: text("state", { enum: ["waiting", "running", "done", "failed"] }).notNull(),
  /** Last line of output, or what to do when it failed. */
  message: text("message"),
  startedAt: instant("started_at"),
  finishedAt: instant("finished_at"),
  createdAt: createdAt(),
});

/** Facts about the installation that every process must agree on, e.g. whether set-up is done. */
export const settings = pgTable("settings", {
  key: text("key").primaryKey(),
  value: jsonb("value").notNull(),
});
