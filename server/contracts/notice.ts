/** What a person is told without having asked: a GPU that will be taken back, one that idles, a budget, a grant. */
import { z } from "zod";
import { instant, noticeId } from "./common.ts";

export const noticeKind = z.enum([
  "reclaim",
  "idle",
  "long-kernel",
  "granted",
  "budget",
  "quota-request",
  "guarantee",
  "workspace-stop",
  "workspace-move",
  "workspace-restarted",
  "invited",
  "password",
]);

export const noticeView = z.strictObject({
  id: noticeId,
  kind: noticeKind,
  title: z.string(),
  body: z.string(),
  /** The page that shows it, a path of the portal. */
  href: z.string(),
  /** When what it announces happens; null: it has happened. */
  dueAt: instant.nullable(),
  createdAt: instant,
  /** When the person has read it. */
  readAt: instant.nullable(),
});
export type NoticeView = z.infer<typeof noticeView>;

/** The newest first; `unread` counts all of them, also what is not in the list. */
export const noticeList = z.strictObject({ notices: z.array(noticeView), unread: z.int() });
export type NoticeList = z.infer<typeof noticeList>;

/** A page of them: all that were told in the last 60 days, or those that are unread. */
export const noticePage = noticeList.extend({
  /** All that match, on whichever page. */
  total: z.int(),
  /** What `after` is for the next page; null: this is the last. */
  next: noticeId.nullable(),
});
export type NoticePage = z.infer<typeof noticePage>;

export const listNoticesInput = z.strictObject({
  limit: z.coerce.number().int().min(1).max(100).default(20),
  /** `unread`: those alone. */
  show: z.enum(["all", "unread"]).default("all"),
  /** The last notice of the page before. */
  after: noticeId.optional(),
});
export type ListNoticesInput = z.input<typeof listNoticesInput>;

/** Without ids: all of them. */
export const markNoticesReadInput = z.strictObject({ ids: z.array(noticeId).max(100).optional() });
export type MarkNoticesReadInput = z.input<typeof markNoticesReadInput>;
