/** Who is signed in. */
import { z } from "zod";
import { email, instant, sessionId, teamId, typedPassword, userId } from "./common.ts";
import { noticeList } from "./notice.ts";
import { stopList } from "./sharing.ts";

export const me = z.strictObject({
  id: userId,
  email: z.string(),
  name: z.string(),
  isAdmin: z.boolean(),
  isSample: z.boolean(),
  /** Signs in through the organisation's identity provider. */
  byProvider: z.boolean(),
  /** Has a password here, which can be changed here. */
  hasPassword: z.boolean(),
  teams: z.array(z.strictObject({ id: teamId, name: z.string(), role: z.enum(["lead", "member"]) })),
});
export type Me = z.infer<typeof me>;

const amount = z.strictObject({ gpuType: z.string(), milli: z.int() });

/** What the frame of every page shows of one's own: what one holds or waits for, was told, and is stopped by. */
export const glance = z.strictObject({
  /** When it was read. */
  at: instant,
  /**
   * `expiresAt` is the time limit, `idleEndsAt` the idle limit (null: unknown), `releaseAt` the time of its reclaim
   * (null: none is due).
   */
  leases: z.array(
    z.strictObject({
      ...amount.shape,
      expiresAt: instant,
      idleEndsAt: instant.nullable(),
      releaseAt: instant.nullable(),
    }),
  ),
  /** What waits longest, for who holds nothing; `position` is null when it has just been decided. */
  waiting: z.strictObject({ ...amount.shape, position: z.int().nullable() }).nullable(),
  ...noticeList.shape,
  ...stopList.shape,
});
export type Glance = z.infer<typeof glance>;

export const sessionView = z.strictObject({
  id: sessionId,
  /** The one that asks. */
  current: z.boolean(),
  createdAt: instant,
  expiresAt: instant,
  /** Exact to the minute; null: not since this is recorded. */
  lastSeenAt: instant.nullable(),
  /** What the browser said of itself, and where it signed in from; null when it said nothing. */
  userAgent: z.string().nullable(),
  address: z.string().nullable(),
  /** An admin opened it as the sample user. */
  openedByAdmin: z.boolean(),
});
export type SessionView = z.infer<typeof sessionView>;
/** Those that last, the one last used first. */
export const sessionList = z.strictObject({ sessions: z.array(sessionView) });
export type SessionList = z.infer<typeof sessionList>;

export const endSessionInput = z.strictObject({ sessionId });
export type EndSessionInput = z.input<typeof endSessionInput>;

/** A sign-in by password; `address` is where it comes from. */
export const signInInput = z.strictObject({ email, password: typedPassword, address: z.string().max(64) });
export type SignInInput = z.input<typeof signInInput>;

/** What an OIDC provider says of a person. */
export const oidcIdentity = z.strictObject({
  issuer: z.string().min(1),
  subject: z.string().min(1),
  /** As the provider writes it. */
  email: z.string().optional(),
  /** Absent: the provider sends no `email_verified`. */
  emailVerified: z.boolean().optional(),
  /** What they are called there, for an account that is made now. */
  name: z.string().optional(),
  /** The groups that they are in; left out: the provider says nothing of groups. */
  groups: z.array(z.string()).optional(),
});
export type OidcIdentity = z.input<typeof oidcIdentity>;
