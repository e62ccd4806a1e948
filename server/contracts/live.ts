/** Live data for pages: names of what changed; the page reads it again by the ordinary way. */
import { z } from "zod";

/**
 * Topics a browser may follow. `notice`: a person was told something, or has read it; the id is the person's. `usage`:
 * workspaces were measured again. `what-if`: a replay has come further. `dataset`: one was registered, changed, measured
 * or removed. `environment`: one was proposed, approved or taken back, or its check has come further. `size`: what sizes
 * are offered, or who may choose others, has changed. `people`: accounts, admins' rights, who is in which team, or what
 * groups give.
 */
export const publicTopic = z.enum([
  "workspace",
  "lease",
  "pool",
  "setup",
  "audit",
  "notice",
  "usage",
  "what-if",
  "dataset",
  "environment",
  "size",
  "people",
]);
export type PublicTopic = z.infer<typeof publicTopic>;

export const liveInput = z.strictObject({
  /** Comma-separated. */
  topics: z
    .string()
    .default("workspace,lease")
    .transform((value) => value.split(","))
    .pipe(z.array(publicTopic).min(1).max(publicTopic.options.length)),
  /** When the reader last read, milliseconds since 1970: topics that may have changed since are named at once. */
  since: z.coerce.number().int().nonnegative().optional(),
});
export type LiveInput = z.input<typeof liveInput>;
export type FollowInput = z.output<typeof liveInput>;

/** One server-sent event's data; `id` is null when anything of the topic may have changed. */
export const liveEvent = z.strictObject({ topic: publicTopic, id: z.string().nullable() });
