/** People: who they are, how they are invited. */
import { z } from "zod";
import {
  email,
  instant,
  invitationId,
  oneTimeCode,
  pageLimit,
  password,
  personName,
  searchText,
  teamId,
  typedPassword,
  userId,
} from "./common.ts";

export const userView = z.strictObject({
  id: userId,
  email: z.string(),
  name: z.string(),
  isAdmin: z.boolean(),
  /** A group of the identity provider gives the admin's rights, and takes them back when its person leaves it. */
  adminByGroup: z.boolean(),
  isSample: z.boolean(),
  /** Signs in through the organisation's identity provider, and so has no password here. */
  byProvider: z.boolean(),
  /** Deactivated: nothing and nobody signs in as this person; workspaces are stopped, their files stay. */
  disabled: z.boolean(),
  /** Workspaces of theirs that run or are being started. */
  running: z.int(),
  createdAt: instant,
  teams: z.array(z.strictObject({ id: teamId, name: z.string(), role: z.enum(["lead", "member"]) })),
});
export type UserView = z.infer<typeof userView>;

export const listUsersInput = z.strictObject({
  /** Words, each in the name, the e-mail or a team. */
  search: searchText.optional(),
  /** Everybody when left out. */
  limit: pageLimit.optional(),
  /** The last person of the page before. */
  after: userId.optional(),
});
export type ListUsersInput = z.input<typeof listUsersInput>;
export const userList = z.strictObject({
  users: z.array(userView),
  /** All that match, on whichever page. */
  total: z.int(),
  /** What `after` is for the next page; null: this is the last. */
  next: userId.nullable(),
});
export type UserList = z.infer<typeof userList>;

export const userInput = z.strictObject({ id: userId });
export type UserInput = z.input<typeof userInput>;
export const setAdminInput = z.strictObject({ id: userId, isAdmin: z.boolean() });
export type SetAdminInput = z.input<typeof setAdminInput>;

export const inviteInput = z.strictObject({ email, teamId, role: z.enum(["lead", "member"]).default("member") });
export type InviteInput = z.input<typeof inviteInput>;
/** The link is shown once; only its hash is kept. */
export const inviteOutput = z.strictObject({ link: z.url(), expiresAt: instant });
export type InviteOutput = z.infer<typeof inviteOutput>;

/** An invitation that waits to be accepted. */
export const pendingInvitation = z.strictObject({
  id: invitationId,
  email: z.string(),
  role: z.enum(["lead", "member"]),
  invitedAt: instant,
  expiresAt: instant,
});
export type PendingInvitation = z.infer<typeof pendingInvitation>;
export const listInvitationsInput = z.strictObject({ teamId });
export type ListInvitationsInput = z.input<typeof listInvitationsInput>;
export const invitationList = z.strictObject({ invitations: z.array(pendingInvitation) });
export type InvitationList = z.infer<typeof invitationList>;
export const revokeInvitationInput = z.strictObject({ teamId, id: invitationId });
export type RevokeInvitationInput = z.input<typeof revokeInvitationInput>;

/** What the page of an invitation shows before it is accepted. */
export const readInviteInput = z.strictObject({ code: oneTimeCode });
export type ReadInviteInput = z.input<typeof readInviteInput>;
export const inviteView = z.strictObject({
  email: z.string(),
  teamName: z.string(),
  role: z.enum(["lead", "member"]),
  /** An account with this e-mail exists; its person signs in to join the team. */
  hasAccount: z.boolean(),
});
export type InviteView = z.infer<typeof inviteView>;

export const acceptInviteInput = z.strictObject({ code: oneTimeCode, name: personName, password });
export type AcceptInviteInput = z.input<typeof acceptInviteInput>;
export const acceptInviteOutput = z.strictObject({ userId, email: z.string() });
export type AcceptInviteOutput = z.infer<typeof acceptInviteOutput>;

export const joinByInviteInput = z.strictObject({ code: oneTimeCode });
export type JoinByInviteInput = z.input<typeof joinByInviteInput>;
export const joinByInviteOutput = z.strictObject({ teamId });
export type JoinByInviteOutput = z.infer<typeof joinByInviteOutput>;

/** A link with which a person chooses a new password; shown once, only its hash is kept, and it works once. */
export const passwordLink = z.strictObject({ link: z.url(), expiresAt: instant });
export type PasswordLink = z.infer<typeof passwordLink>;

export const readPasswordLinkInput = z.strictObject({ code: oneTimeCode });
export type ReadPasswordLinkInput = z.input<typeof readPasswordLinkInput>;
/** Whose password it is for. */
export const passwordLinkView = z.strictObject({ email: z.string(), name: z.string() });
export type PasswordLinkView = z.infer<typeof passwordLinkView>;

export const redeemPasswordLinkInput = z.strictObject({
  code: oneTimeCode,
  password,
  /** Also revoke the person's access tokens, where somebody else may have known the old password. */
  revokeTokens: z.boolean().default(false),
});
export type RedeemPasswordLinkInput = z.input<typeof redeemPasswordLinkInput>;
export const redeemPasswordLinkOutput = z.strictObject({ email: z.string() });
export type RedeemPasswordLinkOutput = z.infer<typeof redeemPasswordLinkOutput>;

export const changePasswordInput = z.strictObject({
  currentPassword: typedPassword,
  password,
  /** Also revoke one's access tokens, where somebody else may have known the old password. */
  revokeTokens: z.boolean().default(false),
});
export type ChangePasswordInput = z.input<typeof changePasswordInput>;
/** How many other browser sessions were ended by it. */
export const changePasswordOutput = z.strictObject({ endedSessions: z.int() });
export type ChangePasswordOutput = z.infer<typeof changePasswordOutput>;

export const openSampleInput = z.strictObject({
  /** The team the sample user belongs to; without it the team `demo`. */
  teamId: teamId.optional(),
});
export type OpenSampleInput = z.input<typeof openSampleInput>;
export const openSampleOutput = z.strictObject({
  /** To be opened in a window of its own within 60 s; works once. */
  url: z.url(),
  expiresAt: instant,
  /** On localhost the window has a hostname, and so a cookie, of its own; elsewhere it must be a private window. */
  needsPrivateWindow: z.boolean(),
});
export type OpenSampleOutput = z.infer<typeof openSampleOutput>;

export const enterSampleInput = z.strictObject({ code: oneTimeCode });
export type EnterSampleInput = z.input<typeof enterSampleInput>;
