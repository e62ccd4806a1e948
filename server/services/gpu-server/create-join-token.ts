import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type CreateJoinTokenInput, createJoinTokenInput, type JoinToken } from "#server/contracts/gpu-server.ts";
import { oneTimeCodes } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { hashSecret, newId, newSecret } from "#server/ids.ts";
import { parse } from "#server/parse.ts";

const VALID_MS = 3600_000;

/** A one-time token with which a gpud joins the pool, and the line to paste on its host. Valid for an hour. */
export async function createJoinToken(ctx: Context, raw: CreateJoinTokenInput = {}): Promise<JoinToken> {
  const input = parse(createJoinTokenInput, raw);
  authorize(ctx.principal, "gpu-server.create-join-token");
  const token = newSecret("slj");
  const expiresAt = new Date(ctx.now().getTime() + VALID_MS);
  await inTransaction(ctx, async (tx) => {
    const id = newId("otc");
    await tx.db.insert(oneTimeCodes).values({
      id,
      kind: "gpud-join",
      secretHash: hashSecret(token),
      createdAt: tx.now(),
      expiresAt,
    });
    await audit(tx, { action: "gpu-server.create-join-token", subject: id, detail: { name: input.name ?? null } });
  });
  const name = input.name === undefined ? "" : ` --name ${input.name}`;
  return {
    token,
    expiresAt: expiresAt.toISOString(),
    command: `gpud join ${env().SLUICE_BROKER_URL} --token ${token}${name}`,
  };
}
