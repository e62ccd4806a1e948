import { sql } from "drizzle-orm";
import { boolean, check, integer, pgTable, text, uniqueIndex } from "drizzle-orm/pg-core";
import { bytes, createdAt, id, version } from "./columns.ts";

/** The sizes that people choose from when they launch. Cores are thousandths, memory is bytes. */
export const workspaceSizes = pgTable(
  "workspace_sizes",
  {
    id: id(),
    name: text("name").notNull(),
    description: text("description").notNull().default(""),
    cpuMilli: integer("cpu_milli").notNull(),
    memoryBytes: bytes("memory_bytes").notNull(),
    /** Smaller is offered earlier. */
    position: integer("position").notNull().default(0),
    /** Null: everybody's. */
    teamIds: text("team_ids").array(),
    /** What a launch gets that names none; one at most. */
    isDefault: boolean("is_default").notNull().default(false),
    version: version(),
    createdAt: createdAt(),
  },
  (t) => [
    uniqueIndex("workspace_sizes_name").on(sql`lower(${t.name})`),
    uniqueIndex("workspace_sizes_default").on(t.isDefault).where(sql`${t.isDefault}`),
  ],
);

/** Who may choose sizes of their own, and how large: one row for the installation; teams differ in `team_policies`. */
export const sizePolicy = pgTable(
  "size_policy",
  {
    only: boolean("only").primaryKey().default(true),
    customSizes: text("custom_sizes", { enum: ["nobody", "leads", "everybody"] }).notNull(),
    maxCpuMilli: integer("max_cpu_milli").notNull(),
    maxMemoryBytes: bytes("max_memory_bytes").notNull(),
    version: version(),
  },
  (t) => [check("size_policy_only", sql`${t.only}`)],
);
