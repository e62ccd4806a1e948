/** Live data for pages: names of what changed; the page reads it again by the ordinary way. */
import { z } from "zod";

/**
 * Topics of which whoever writes tells. `notice`: a person was told something, or has read it; the id is the person's. `usage`:
 * workspaces were measured again, or connections of theirs were refused. `what-if`: a replay has come further. `dataset`: one was registered, changed, measured
 * or removed. `environment`: one was proposed, approved or taken back, or its check has come further. `size`: what sizes
 * are offered, or who may choose others, has changed. `people`: accounts, admins' rights, who is in which team, or what
 * groups give.
 */
export const toldTopic = z.enum([
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

/**
 * Topics of which no writer tells: the portal finds them out for those who follow them. `mine`: a lease, a request or a
 * workspace of the person, or one shared with them; the id is the person's. `health`: a part has begun or ceased to work.
 */
export const foundTopic = z.enum(["mine", "health"]);
export type FoundTopic = z.infer<typeof foundTopic>;

/** Topics a browser may follow. */
export const publicTopic = z.enum([...toldTopic.options, ...foundTopic.options]);
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
