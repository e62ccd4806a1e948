import { and, eq, isNull } from "drizzle-orm";
import { allowAttempt, counted, forget } from "#server/auth/attempts.ts";
import { peekCode } from "#server/auth/one-time-code.ts";
import { authorize, type Context } from "#server/context.ts";
import { type PasswordLinkView, type ReadPasswordLinkInput, readPasswordLinkInput } from "#server/contracts/user.ts";
import { users } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { networkOf } from "#server/http/client-address.ts";
import { parse } from "#server/parse.ts";
import type { UserRow } from "./view.ts";

/** Maximum links from one network in a quarter of an hour that open nothing. */
const WRONG_LINKS = 20;

/** What is said of every link that opens nothing: whether there was one is nobody's to know. */
export const linkNotValid = (): SluiceError =>
  new SluiceError("not-found", "This link was used already or is too old. Ask an admin for a new one.");

/** Whose password a link is for, without using it. */
export async function readPasswordLink(ctx: Context, raw: ReadPasswordLinkInput): Promise<PasswordLinkView> {
  authorize(ctx.principal, "user.redeem-password-link");
  const { code } = parse(readPasswordLinkInput, raw);
  const { email, name } = await personOfLink(ctx, code);
  return { email, name };
}

/** The person of a password link. Wrong links count for the network of the client. */
export async function personOfLink(ctx: Context, code: string): Promise<UserRow> {
  const from = counted("password-link-from", networkOf(ctx.address ?? "unknown"));
  await allowAttempt(ctx, from, WRONG_LINKS, "Too many links that open nothing came from here.");
  const found = await peekCode(ctx, "password", code);
  if (found?.userId == null) throw linkNotValid();
  const [person] = await ctx.db
    .select()
    .from(users)
    .where(and(eq(users.id, found.userId), isNull(users.disabledAt)));
  if (person === undefined) throw linkNotValid();
  await forget(ctx, [from]);
  return person;
}
