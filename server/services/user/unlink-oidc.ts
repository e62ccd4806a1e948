import { eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type UserInput, type UserView, userInput } from "#server/contracts/user.ts";
import { users } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { lockOther } from "./locked.ts";
import { viewOf } from "./view.ts";

/**
 * Removes the link between an account and its subject at the identity provider, for when the provider has a new subject
 * for the person. The next sign-in with the verified e-mail links the account again. Until then, sessions stay valid.
 */
export async function unlinkOidc(ctx: Context, raw: UserInput): Promise<UserView> {
  const { id } = parse(userInput, raw);
  authorize(ctx.principal, "user.unlink-oidc");
  return await inTransaction(ctx, async (tx) => {
    const { oidcSubject } = await lockOther(tx, id, "remove your own link");
    if (oidcSubject !== null) {
      await tx.db.update(users).set({ oidcSubject: null }).where(eq(users.id, id));
      await audit(tx, { action: "user.unlink-oidc", subject: id, detail: { before: { oidcSubject } } });
      await notify(tx.db, "people", id);
    }
    return await viewOf(tx, id);
  });
}
