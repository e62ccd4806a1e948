import { bigserial, index, integer, jsonb, pgTable, text, uniqueIndex } from "drizzle-orm/pg-core";
import { createdAt, id, instant } from "./columns.ts";
import { teams } from "./teams.ts";
import { users } from "./users.ts";

/** A curated catalogue entry; pages call it an environment. */
export const images = pgTable(
  "images",
  {
    id: id(),
    /** Stable word, e.g. `cuda-python`. */
    name: text("name").notNull(),
    title: text("title").notNull(),
    description: text("description").notNull(),
    createdAt: createdAt(),
  },
  (t) => [uniqueIndex("images_name").on(t.name)],
);

/** One version of an image: what a launcher builds once and shares read-only. */
export const imageVersions = pgTable(
  "image_versions",
  {
    id: id(),
    imageId: text("image_id")
      .notNull()
      .references(() => images.id, { onDelete: "cascade" }),
    /** Content hash of the locked definition. */
    version: text("version").notNull(),
    state: text("state", { enum: ["proposed", "testing", "approved", "retired"] }).notNull(),
    /** What the launcher needs: for `local` the folder of the locked definition and its environment variables. */
    spec: jsonb("spec").notNull(),
    /** Whether the launcher has built it on this installation. */
    buildState: text("build_state", { enum: ["pending", "building", "ready", "failed"] }).notNull(),
    buildMessage: text("build_message"),
    builtAt: instant("built_at"),
    /** Of the build that `packages` were read from. */
    builtHash: text("built_hash"),
    /** What the build holds (`packageView` in server/contracts/image.ts); null: nobody has built it here yet. */
    packages: jsonb("packages"),
    /** What somebody has proposed (`proposal` in server/contracts/image.ts); null: it comes with this installation. */
    proposal: jsonb("proposal"),
    /** For which team it was proposed, in which it is tested. */
    teamId: text("team_id").references(() => teams.id, { onDelete: "set null" }),
    proposedBy: text("proposed_by").references(() => users.id, { onDelete: "set null" }),
    /** How far its check is; null: it comes with this installation and needs none. */
    check: text("check", { enum: ["waiting", "running", "passed", "failed"] }),
    /** A sentence for a person when it failed. */
    checkMessage: text("check_message"),
    /** Raised by each check. */
    checkRun: integer("check_run").notNull().default(1),
    /** The workspace that it is tested in, while that is there. */
    checkWorkspaceId: text("check_workspace_id"),
    /** The word of its locked definition, which workspaces run; null: the environment's own word. */
    definition: text("definition"),
    /** Its packages with exact versions and hashes (pip's requirements format). */
    lock: text("lock"),
    /** Whose launches get it; null: everybody's. */
    teamIds: text("team_ids").array(),
    /** The newest version when it was retired, with which it comes back; null: it is not, or it was a proposal. */
    retiredWith: text("retired_with"),
    approvedBy: text("approved_by").references(() => users.id, { onDelete: "set null" }),
    approvedAt: instant("approved_at"),
    createdAt: createdAt(),
  },
  (t) => [uniqueIndex("image_versions_version").on(t.imageId, t.version)],
);

/** Steps and log lines of the checks of what was proposed, streamed to its page. */
export const imageVersionEvents = pgTable(
  "image_version_events",
  {
    seq: bigserial("seq", { mode: "number" }).primaryKey(),
    versionId: text("version_id")
      .notNull()
      .references(() => imageVersions.id, { onDelete: "cascade" }),
    /** Which check it belongs to. */
    run: integer("run").notNull(),
    at: instant("at").notNull().defaultNow(),
    kind: text("kind", { enum: ["step-started", "step-done", "step-failed", "log"] }).notNull(),
    /** `lock`, `build`, `launch`, `imports` or `gpu`. */
    step: text("step").notNull(),
    message: text("message").notNull(),
  },
  (t) => [index("image_version_events_version").on(t.versionId, t.seq)],
);
