import { index, pgTable, text, uniqueIndex } from "drizzle-orm/pg-core";
import { createdAt, id, instant } from "./columns.ts";
import { users } from "./users.ts";

/** What a person is told without having asked: the bell. Words are written once, for this reader. */
export const notices = pgTable(
  "notices",
  {
    id: id(),
    userId: text("user_id")
      .notNull()
      .references(() => users.id, { onDelete: "cascade" }),
    kind: text("kind", {
      enum: [
        ...(["reclaim", "idle", "long-kernel", "granted", "budget", "quota-request", "guarantee"] as const),
        ...(["workspace-stop", "workspace-move", "workspace-restarted", "invited", "password"] as const),
      ],
    }).notNull(),
    /** What it is about, once: the same thing is not told twice. */
    key: text("key").notNull(),
    title: text("title").notNull(),
    body: text("body").notNull(),
    /** The page that shows it, a path of the portal. */
    href: text("href").notNull(),
    /** When what it announces happens. */
    dueAt: instant("due_at"),
    createdAt: createdAt(),
    readAt: instant("read_at"),
  },
  (t) => [uniqueIndex("notices_key").on(t.userId, t.key), index("notices_user").on(t.userId, t.createdAt)],
);
