import { jsonb, pgTable, text, uniqueIndex } from "drizzle-orm/pg-core";
import { createdAt, id, instant } from "./columns.ts";

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
    createdAt: createdAt(),
  },
  (t) => [uniqueIndex("image_versions_version").on(t.imageId, t.version)],
);
