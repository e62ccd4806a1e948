/** Claims of an ID token, parsed tolerantly: providers deviate from the standard. */
import { z } from "zod";
import type { OidcIdentity } from "#server/contracts/session.ts";

const text = z.string().optional().catch(undefined);

const claims = z.object({
  sub: z.string().min(1),
  email: text,
  /** Some providers send a string instead of a boolean. */
  email_verified: z
    .union([z.boolean(), z.enum(["true", "false"]).transform((word) => word === "true")])
    .optional()
    // Said in another form: not verified, whatever SLUICE_OIDC_TRUST_EMAIL says.
    .catch(false),
  name: text,
});

/** Providers send one group as a string, several as a list. `undefined` for a missing or malformed claim. */
const groupsClaim = z
  .union([z.string().transform((one) => [one]), z.array(z.string())])
  .optional()
  .catch(undefined);

export type ClaimSettings = {
  issuer: string;
  groupsClaim: string;
  /** Treats an e-mail as verified when the token has no `email_verified`. */
  trustEmail: boolean;
};

/** The identity in an ID token; undefined when the token names no subject. */
export function identityOf(profile: unknown, settings: ClaimSettings): OidcIdentity | undefined {
  const given = claims.safeParse(profile);
  if (!given.success) return undefined;
  const { sub: subject, email, email_verified: verified, name } = given.data;
  const groups = Object.entries(profile as Record<string, unknown>).find(
    ([claim]) => claim === settings.groupsClaim,
  )?.[1];
  return {
    issuer: settings.issuer,
    subject,
    email,
    emailVerified: verified ?? (settings.trustEmail ? true : undefined),
    name,
    groups: groupsClaim.parse(groups),
  };
}
