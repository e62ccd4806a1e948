/** Personal access tokens for the API. */
import { z } from "zod";
import { accessTokenId, instant } from "./common.ts";

export const accessTokenView = z.strictObject({
  id: accessTokenId,
  name: z.string(),
  createdAt: instant,
  expiresAt: instant.nullable(),
  lastUsedAt: instant.nullable(),
});
export type AccessTokenView = z.infer<typeof accessTokenView>;
export const accessTokenList = z.strictObject({ tokens: z.array(accessTokenView) });
export type AccessTokenList = z.infer<typeof accessTokenList>;

export const createAccessTokenInput = z.strictObject({
  name: z.string().trim().min(1, "A name is needed.").max(100),
  /** Days until it ends; at most a year. */
  days: z.int().min(1).max(366).default(90),
});
export type CreateAccessTokenInput = z.input<typeof createAccessTokenInput>;
/** `secret` is shown this once; only its hash is kept. */
export const createAccessTokenOutput = z.strictObject({ token: accessTokenView, secret: z.string() });
export type CreateAccessTokenOutput = z.infer<typeof createAccessTokenOutput>;

export const revokeAccessTokenInput = z.strictObject({ id: accessTokenId });
export type RevokeAccessTokenInput = z.input<typeof revokeAccessTokenInput>;
