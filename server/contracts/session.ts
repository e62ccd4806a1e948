/** Who is signed in. */
import { z } from "zod";
import { email, sessionId, teamId, userId } from "./common.ts";

export const me = z.strictObject({
  id: userId,
  email: z.string(),
  name: z.string(),
  isAdmin: z.boolean(),
  isSample: z.boolean(),
  teams: z.array(z.strictObject({ id: teamId, name: z.string(), role: z.enum(["lead", "member"]) })),
});
export type Me = z.infer<typeof me>;

export const endSessionInput = z.strictObject({ sessionId });
export type EndSessionInput = z.input<typeof endSessionInput>;

/** A sign-in by password; `address` is where it comes from. */
export const signInInput = z.strictObject({ email, password: z.string().max(256), address: z.string().max(64) });
export type SignInInput = z.input<typeof signInInput>;

/** What an OIDC provider says of a person. */
export const oidcIdentity = z.strictObject({
  issuer: z.string().min(1),
  subject: z.string().min(1),
  email: email.optional(),
  emailVerified: z.boolean(),
});
export type OidcIdentity = z.input<typeof oidcIdentity>;
