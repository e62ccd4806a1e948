import { allowAttempt, counted } from "#server/auth/attempts.ts";
import { audit, authorize, type Context } from "#server/context.ts";
import { SluiceError } from "#server/errors.ts";
import { networkOf } from "#server/http/client-address.ts";
import { logger } from "#server/log.ts";

/** A sign-in through the provider that opened no session. */
export type Refusal = {
  /** A short word for searches in the log. */
  code: string;
  /** For an admin: what is wrong, then what to do. */
  reason: string;
  issuer: string;
  /** The account of the identity, if there is one. */
  userId?: string | undefined;
  /** What the ID token says, where there was one. */
  subject?: string | undefined;
  email?: string | undefined;
  groups?: readonly string[] | undefined;
  /** What the library or the provider said. */
  said?: string | undefined;
};

/** Maximum audit entries in a quarter of an hour: the audit is permanent, and anyone can fail to sign in. */
const ENTRIES = { ofAddress: 20, ofAll: 200 };

/** Reference of a refusal, shown to the person and searchable in the audit: the start of the trace id. */
export const referenceOf = (ctx: Context): string => ctx.traceId.slice(0, 8);

/** Writes the reason of a refused sign-in to the log and the audit. Returns the reference of both entries. */
export async function recordRefusal(ctx: Context, refusal: Refusal): Promise<string> {
  authorize(ctx.principal, "session.create");
  const { code, reason, userId, issuer, said } = refusal;
  const reference = referenceOf(ctx);
  const identity = {
    email: refusal.email?.slice(0, 254),
    oidcSubject: refusal.subject?.slice(0, 255),
    groups: refusal.groups?.slice(0, 20).map((group) => group.slice(0, 100)),
  };
  const told = { reason, reference, ...identity, issuer, said };
  logger("auth").warn({ code, ...told, userId, address: ctx.address, traceId: ctx.traceId }, "sign-in refused");
  if (!(await mayAudit(ctx))) return reference;
  await audit(ctx, { action: "session.refuse", ...(userId && { subject: userId }), detail: told });
  return reference;
}

async function mayAudit(ctx: Context): Promise<boolean> {
  try {
    await allowAttempt(ctx, counted("sign-in-refused", networkOf(ctx.address ?? "unknown")), ENTRIES.ofAddress, "");
    await allowAttempt(ctx, counted("sign-in-refused"), ENTRIES.ofAll, "");
    return true;
  } catch (error) {
    if (error instanceof SluiceError && error.code === "too-many") return false;
    throw error;
  }
}
