import { useCode } from "#server/auth/one-time-code.ts";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import {
  type RedeemHandoverInput,
  type RedeemHandoverOutput,
  redeemHandoverInput,
} from "#server/contracts/workspace.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { readSession } from "#server/services/session/read.ts";

const notValid = () =>
  new SluiceError("forbidden", "This link was used already or is too old. Open the workspace from the portal again.");

/** For the gateway: trades a one-time code, on the workspace it was made for, while its browser session lasts. */
export async function redeemHandover(ctx: Context, raw: RedeemHandoverInput): Promise<RedeemHandoverOutput> {
  authorize(ctx.principal, "workspace.redeem-handover");
  const input = parse(redeemHandoverInput, raw);
  const code = await inTransaction(ctx, (tx) => useCode(tx, "handover", input.code));
  if (code?.workspaceId !== input.workspaceId || code.userId === null || code.sessionId === null) throw notValid();
  const session = await readSession(ctx, code.sessionId);
  if (session?.userId !== code.userId) throw notValid();
  return { userId: code.userId, sessionId: code.sessionId, workspaceId: input.workspaceId };
}
