/** What-if questions with their answers: the same question about the same log is answered once. */
import { jsonb, pgTable, real, text, uniqueIndex } from "drizzle-orm/pg-core";
import { createdAt, id, instant } from "./columns.ts";
import { users } from "./users.ts";

export const whatIfs = pgTable(
  "what_ifs",
  {
    id: id(),
    /** SHA-256 of everything that the answer follows from. */
    key: text("key").notNull(),
    question: jsonb("question").notNull(),
    state: text("state", { enum: ["running", "done", "failed"] }).notNull(),
    /** 0 to 1. */
    progress: real("progress").notNull().default(0),
    message: text("message"),
    result: jsonb("result"),
    /** Last sign of the process that works on it: without one for long, the next who asks begins anew. */
    aliveAt: instant("alive_at").notNull(),
    askedBy: text("asked_by").references(() => users.id, { onDelete: "set null" }),
    createdAt: createdAt(),
  },
  (t) => [uniqueIndex("what_ifs_key").on(t.key)],
);
