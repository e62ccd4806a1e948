/** Who did what. */
import { z } from "zod";
import { instant, searchText, teamId } from "./common.ts";

export const auditEvent = z.strictObject({
  seq: z.int(),
  at: instant,
  actorKind: z.enum(["user", "workspace", "gpud", "system"]),
  actorId: z.string().nullable(),
  /** The person's name and e-mail, the workspace's or the server's name. */
  actorName: z.string(),
  /** `noun.verb`. */
  action: z.string(),
  subject: z.string().nullable(),
  /** Name of what it was done to, where it has one. */
  subjectName: z.string().nullable(),
  teamId: z.string().nullable(),
  teamName: z.string().nullable(),
  detail: z.record(z.string(), z.unknown()),
  traceId: z.string().nullable(),
  /** Where the request came from, when that is known; told to admins alone. */
  address: z.string().nullable(),
  /** The name of the access token that it was called with. */
  tokenName: z.string().nullable(),
});
export type AuditEvent = z.infer<typeof auditEvent>;

export const listAuditInput = z.strictObject({
  /** A team lead gives the own team. */
  teamId: teamId.optional(),
  /** Events older than this sequence number. */
  before: z.coerce.number().int().min(1).optional(),
  limit: z.coerce.number().int().min(1).max(500).default(100),
  /** Only this operation, or with a trailing dot this noun: `workspace.`. */
  action: z.string().max(60).optional(),
  subject: z.string().max(60).optional(),
  actorId: z.string().max(60).optional(),
  /** Words, each in the name, the e-mail or the id of who did it. */
  who: searchText.optional(),
  /** Words to match in the name or id of the subject; for refused sign-ins, in the reference or e-mail. */
  what: searchText.optional(),
  /** Not before, and before this time. */
  from: instant.optional(),
  to: instant.optional(),
  /** `csv` answers all that match as a file, whatever `limit` and `before` are. */
  format: z.enum(["json", "csv"]).default("json"),
});
export type ListAuditInput = z.input<typeof listAuditInput>;
export const auditList = z.strictObject({
  /** Newest first. */
  events: z.array(auditEvent),
  /** For `before` of the next page; null at the end. */
  next: z.int().nullable(),
});
export type AuditList = z.infer<typeof auditList>;
