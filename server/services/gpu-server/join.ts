import { and, eq, gt, isNull } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type JoinAnswer, type JoinInput, joinInput } from "#server/contracts/control.ts";
import { gpuServers, oneTimeCodes } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { hashSecret, newId } from "#server/ids.ts";
import type { ClusterAccount } from "#server/launchers/kubernetes/cluster-account.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { accountOf, inOnePod, placeOf } from "./pod-of.ts";

/**
 * A gpud trades a one-time token, or the token of its account in the cluster, for its place in the pool: from then on
 * its own key is its identity. A gpud that is in the pool already keeps its place; one that was removed needs a fresh
 * key.
 */
export async function join(ctx: Context, raw: JoinInput): Promise<JoinAnswer> {
  const input = parse(joinInput, raw);
  authorize(ctx.principal, "gpu-server.join");
  return await admitServer(ctx, input, await accountOf(input.token));
}

/**
 * Gives the bearer of a token its place. `account`: whose the token is in the cluster; one pod's brings no second server
 * while the first is in the pool.
 */
export async function admitServer(
  ctx: Context,
  input: JoinInput,
  account: ClusterAccount | undefined,
): Promise<JoinAnswer> {
  return await inOnePod(
    account,
    async () =>
      await inTransaction(ctx, async (tx) => {
        if (account === undefined) await spend(tx, input.token);
        const [known] = await tx.db.select().from(gpuServers).where(eq(gpuServers.publicKey, input.publicKey)).limit(1);
        if (known?.state === "removed") {
          throw new SluiceError(
            "conflict",
            "This GPU server was removed. Delete gpud's state directory and join again.",
          );
        }
        // Whoever shows a key here has not proven it: nothing of the server changes before it has connected.
        if (known !== undefined) return { serverId: known.id };
        const id = newId("gsv");
        await tx.db.insert(gpuServers).values({
          id,
          name: await freeName(tx, input.name),
          publicKey: input.publicKey,
          state: "joining",
          ...(account === undefined ? {} : placeOf(account)),
          createdAt: tx.now(),
        });
        const detail = { name: input.name, account: account?.name, pod: account?.pod?.name };
        await audit(tx, { action: "gpu-server.join", subject: id, detail });
        await notify(tx.db, "pool", id);
        return { serverId: id };
      }),
  );
}

async function spend(tx: Context, token: string): Promise<void> {
  const now = tx.now();
  const [used] = await tx.db
    .update(oneTimeCodes)
    .set({ usedAt: now })
    .where(
      and(
        eq(oneTimeCodes.secretHash, hashSecret(token)),
        eq(oneTimeCodes.kind, "gpud-join"),
        isNull(oneTimeCodes.usedAt),
        gt(oneTimeCodes.expiresAt, now),
      ),
    )
    .returning({ id: oneTimeCodes.id });
  if (used === undefined) {
    throw new SluiceError(
      "forbidden",
      "This join token is not valid (any more). Make a new one: Pool > Add GPU server.",
    );
  }
}

/** Two hosts of one name would make "soft-0 on local" mean two devices. */
async function freeName(ctx: Context, wanted: string): Promise<string> {
  const rows = await ctx.db.select({ name: gpuServers.name, state: gpuServers.state }).from(gpuServers);
  const taken = new Set(rows.filter((row) => row.state !== "removed").map((row) => row.name));
  let name = wanted;
  for (let n = 2; taken.has(name); n++) name = `${wanted}-${n}`;
  return name;
}
