/** Reasons to refuse a sign-in with a valid identity of the provider. */
import { SluiceError } from "#server/errors.ts";

/** For admins, in the audit and the log: what is missing, then what to do. */
const reasons = {
  "no-subject": "The ID token has no subject. Check the client at the provider.",
  "no-email": "The ID token has no e-mail address. Have the provider send the claim email.",
  "email-malformed": "The e-mail in the ID token is not an e-mail address. Correct it at the provider.",
  "email-not-verified": "The provider says that the e-mail is not verified. Have it verified there.",
  "email-not-said":
    "The ID token does not say whether the e-mail is verified. If only the provider's admins set e-mails, set SLUICE_OIDC_TRUST_EMAIL=1.",
  "no-access":
    "No account has this e-mail, and none of the person's groups gives access. Invite the person, or add a group under People.",
  "other-subject":
    "The account is linked to another subject at the provider. If this is the same person, choose Remove link under People. Without an admin, start with SLUICE_PASSWORD_LINK_FOR.",
  deactivated: "The account is deactivated. An admin reactivates it under People.",
  sample: "The sample user never signs in through a provider. An admin opens it under People.",
} as const;

export type RefusalReason = keyof typeof reasons;

export class SignInRefused extends SluiceError {
  readonly reason: RefusalReason;
  /** The account of the identity, if there is one. */
  readonly userId: string | undefined;

  constructor(reason: RefusalReason, userId?: string) {
    super("forbidden", reasons[reason]);
    this.name = "SignInRefused";
    this.reason = reason;
    this.userId = userId;
  }
}
