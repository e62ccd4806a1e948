/** Personal access tokens for the API. */
import { z } from "zod";
import { accessTokenId, instant } from "./common.ts";
import { typedLine } from "./typed-name.ts";

/**
 * What a token may do of what its person may: `read` all that the person sees; `workspaces`: launch, start, stop and
 * change one's own, end and extend one's own leases, ask for more; `manage`: whatever else a person, a lead or an admin
 * may do without a browser session.
 */
export const tokenScopes = ["read", "workspaces", "manage"] as const;
export type TokenScope = (typeof tokenScopes)[number];
export const tokenScope = z.enum(tokenScopes);

export const accessTokenView = z.strictObject({
  id: accessTokenId,
  name: z.string(),
  scopes: z.array(tokenScope),
  createdAt: instant,
  expiresAt: instant.nullable(),
  lastUsedAt: instant.nullable(),
});
export type AccessTokenView = z.infer<typeof accessTokenView>;
export const accessTokenList = z.strictObject({ tokens: z.array(accessTokenView) });
export type AccessTokenList = z.infer<typeof accessTokenList>;

export const createAccessTokenInput = z.strictObject({
  name: typedLine({ max: 100, needed: "A name is needed." }),
  /** Days until it ends; at most a year. */
  days: z.int().min(1).max(366).default(90),
  /** `read` is always among them. */
  scopes: z
    .array(tokenScope)
    .max(tokenScopes.length)
    .default(["read", "workspaces"])
    .transform((given) => tokenScopes.filter((scope) => scope === "read" || given.includes(scope))),
});
export type CreateAccessTokenInput = z.input<typeof createAccessTokenInput>;
/** `secret` is shown this once; only its hash is kept. */
export const createAccessTokenOutput = z.strictObject({ token: accessTokenView, secret: z.string() });
export type CreateAccessTokenOutput = z.infer<typeof createAccessTokenOutput>;

export const revokeAccessTokenInput = z.strictObject({ id: accessTokenId });
export type RevokeAccessTokenInput = z.input<typeof revokeAccessTokenInput>;
