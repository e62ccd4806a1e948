import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import {
  type CreateAccessTokenInput,
  type CreateAccessTokenOutput,
  createAccessTokenInput,
} from "#server/contracts/access-token.ts";
import { accessTokens } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { hashSecret, newId, newSecret } from "#server/ids.ts";
import { parse } from "#server/parse.ts";
import { accessTokenViewOf } from "#server/services/access-token/list.ts";

/** A token that acts as its person, as far as its scopes reach. The secret is in the answer and nowhere else. */
export async function create(ctx: Context, raw: CreateAccessTokenInput): Promise<CreateAccessTokenOutput> {
  const { principal } = ctx;
  authorize(principal, "access-token.create");
  if (principal.kind !== "user") throw new SluiceError("forbidden", "Only a person has access tokens.");
  const input = parse(createAccessTokenInput, raw);
  const secret = newSecret("slp");
  return await inTransaction(ctx, async (tx) => {
    const [row] = await tx.db
      .insert(accessTokens)
      .values({
        id: newId("pat"),
        userId: principal.userId,
        name: input.name,
        scopes: input.scopes,
        secretHash: hashSecret(secret),
        createdAt: tx.now(),
        expiresAt: new Date(tx.now().getTime() + input.days * 86_400_000),
      })
      .returning();
    if (row === undefined) throw new SluiceError("internal", "The token was not written.");
    const { name, days, scopes } = input;
    await audit(tx, { action: "access-token.create", subject: row.id, detail: { name, days, scopes } });
    return { token: accessTokenViewOf(row), secret };
  });
}
