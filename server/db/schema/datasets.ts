import { sql } from "drizzle-orm";
import { boolean, index, integer, jsonb, pgTable, primaryKey, text, uniqueIndex } from "drizzle-orm/pg-core";
import { bytes, createdAt, id, instant, version } from "./columns.ts";
import { teams } from "./teams.ts";
import { users } from "./users.ts";
import { workspaces } from "./workspaces.ts";

/** Files that workspaces mount: a team's, or everybody's. */
export const datasets = pgTable(
  "datasets",
  {
    id: id(),
    /** Its folder in a workspace: `~/datasets/<name>`. */
    name: text("name").notNull(),
    description: text("description").notNull(),
    /** Whose it is; null: everybody's. */
    teamId: text("team_id").references(() => teams.id, { onDelete: "cascade" }),
    /** Where the files lie (`datasetSource` in server/contracts/dataset.ts); stays as it was registered. */
    source: jsonb("source").notNull(),
    writable: boolean("writable").notNull().default(false),
    /** Read into the node's cache when a workspace starts. */
    prefetch: boolean("prefetch").notNull().default(true),
    /** Measured of a folder, told of anything else; null: unknown. */
    sizeBytes: bytes("size_bytes"),
    fileCount: integer("file_count"),
    /** When a folder was last measured; null: it is measured next. */
    measuredAt: instant("measured_at"),
    /** Why it could not be measured. */
    measureMessage: text("measure_message"),
    registeredBy: text("registered_by").references(() => users.id, { onDelete: "set null" }),
    createdAt: createdAt(),
    version: version(),
  },
  (t) => [uniqueIndex("datasets_name").on(sql`coalesce(${t.teamId}, '')`, t.name)],
);

/** Which datasets a workspace mounts, and how far each is in its node's cache since the last start. */
export const workspaceDatasets = pgTable(
  "workspace_datasets",
  {
    workspaceId: text("workspace_id")
      .notNull()
      .references(() => workspaces.id, { onDelete: "cascade" }),
    datasetId: text("dataset_id")
      .notNull()
      .references(() => datasets.id, { onDelete: "cascade" }),
    /** `missing`: the last start found no files there and left it out. Null: nothing was read ahead. */
    prefetchState: text("prefetch_state", { enum: ["reading", "done", "partly", "failed", "missing"] }),
    prefetchedBytes: bytes("prefetched_bytes"),
    /** Of so many bytes; null while that is being counted. */
    prefetchTotal: bytes("prefetch_total"),
    /** A sentence for a person when it is not all there. */
    prefetchMessage: text("prefetch_message"),
    /** The last sign of the process that reads. */
    prefetchAt: instant("prefetch_at"),
  },
  (t) => [primaryKey({ columns: [t.workspaceId, t.datasetId] }), index("workspace_datasets_dataset").on(t.datasetId)],
);
