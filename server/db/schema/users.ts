import { boolean, index, pgTable, text, uniqueIndex } from "drizzle-orm/pg-core";
import type { TokenScope } from "#server/contracts/access-token.ts";
import type { Theme } from "#server/contracts/theme.ts";
import { createdAt, id, instant } from "./columns.ts";

/** People. A person signs in with a password of their own, or through an OIDC provider, or both. */
export const users = pgTable(
  "users",
  {
    id: id(),
    email: text("email").notNull(),
    name: text("name").notNull(),
    /** argon2id hash; null when the person signs in only through OIDC. */
    passwordHash: text("password_hash"),
    /** `issuer|subject` of the OIDC account, when there is one. */
    oidcSubject: text("oidc_subject"),
    isAdmin: boolean("is_admin").notNull().default(false),
    /** A group of the identity provider has made them one, and leaving it takes that back. */
    adminByGroup: boolean("admin_by_group").notNull().default(false),
    /** The sample user that an admin may open in a window of its own. */
    isSample: boolean("is_sample").notNull().default(false),
    disabledAt: instant("disabled_at"),
    createdAt: createdAt(),
  },
  (t) => [uniqueIndex("users_email").on(t.email), uniqueIndex("users_oidc_subject").on(t.oidcSubject)],
);

/** A browser session. The cookie holds its id in a signed token; revoking the row ends it everywhere. */
export const sessions = pgTable(
  "sessions",
  {
    id: id(),
    userId: text("user_id")
      .notNull()
      .references(() => users.id, { onDelete: "cascade" }),
    createdAt: createdAt(),
    expiresAt: instant("expires_at").notNull(),
    revokedAt: instant("revoked_at"),
    userAgent: text("user_agent"),
    /** Where the person signed in from. */
    address: text("address"),
    /** Last use, exact to the minute. */
    lastSeenAt: instant("last_seen_at"),
    /** The look of its browser's pages, which JupyterLab takes over; null until the person chooses one. */
    theme: text("theme").$type<Theme>(),
    /** Set when an admin opened this session for the sample user. */
    openedBy: text("opened_by").references(() => users.id),
  },
  (t) => [index("sessions_user").on(t.userId)],
);

/** Personal access tokens for the API. Only a SHA-256 of the secret is kept. */
export const accessTokens = pgTable(
  "access_tokens",
  {
    id: id(),
    userId: text("user_id")
      .notNull()
      .references(() => users.id, { onDelete: "cascade" }),
    name: text("name").notNull(),
    secretHash: text("secret_hash").notNull(),
    /** What it may do of what its person may; tokens from before there were scopes may do all. */
    scopes: text("scopes").array().$type<TokenScope[]>().notNull().default(["read", "workspaces", "manage"]),
    createdAt: createdAt(),
    expiresAt: instant("expires_at"),
    lastUsedAt: instant("last_used_at"),
    revokedAt: instant("revoked_at"),
  },
  (t) => [uniqueIndex("access_tokens_secret").on(t.secretHash), index("access_tokens_user").on(t.userId)],
);

/**
 * One-time links and codes, kept as SHA-256: the set-up link, invitations, the hand-over to a workspace's
 * hostname, the window of the sample user, the link for a new password, and the token that lets a gpud join.
 */
export const oneTimeCodes = pgTable(
  "one_time_codes",
  {
    id: id(),
    kind: text("kind", { enum: ["setup", "invite", "handover", "sample", "password", "gpud-join"] }).notNull(),
    secretHash: text("secret_hash").notNull(),
    userId: text("user_id").references(() => users.id, { onDelete: "cascade" }),
    teamId: text("team_id"),
    workspaceId: text("workspace_id"),
    sessionId: text("session_id"),
    /** For an invitation: the e-mail invited and the role in the team. */
    email: text("email"),
    role: text("role", { enum: ["lead", "member"] }),
    createdAt: createdAt(),
    expiresAt: instant("expires_at").notNull(),
    usedAt: instant("used_at"),
  },
  (t) => [uniqueIndex("one_time_codes_secret").on(t.secretHash)],
);
