import { z } from "zod";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import type { GiveBackAnswer } from "#server/contracts/lease.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { beginEnd } from "./ending.ts";
import { GIVE_BACK_MS } from "./policy.ts";
import { workspacePrincipal } from "./request.ts";
import { type LeaseRow, ownLease } from "./view.ts";
import type { Watcher } from "./watch.ts";

const giveBackInput = z.strictObject({
  leaseId: z.string().max(64),
  /** Keep what is allocated in gpud's host memory for the next lease of this owner. */
  park: z.boolean().default(false),
});
export type GiveBackInput = z.input<typeof giveBackInput>;

/** Gives a GPU back; answers when gpud has parked or ended the workers. Giving back twice is giving back once. */
export async function giveBack(ctx: Context, raw: GiveBackInput, watcher: Watcher): Promise<GiveBackAnswer> {
  const input = parse(giveBackInput, raw);
  const { workspaceId } = workspacePrincipal(ctx);
  authorize(ctx.principal, "lease.give-back", { workspaceId });
  const { lease: held, server } = await ownLease(ctx.db, workspaceId, input.leaseId);
  const watch = watcher(held.id);
  try {
    await inTransaction(ctx, async (tx) => {
      await beginEnd(tx, [held.id], { reason: "given back", mode: input.park ? "park" : "kill" });
    });
    const until = ctx.now().getTime() + GIVE_BACK_MS;
    for (;;) {
      const { lease } = await ownLease(ctx.db, workspaceId, held.id);
      if (lease.state === "ended") return answer(lease);
      const left = until - ctx.now().getTime();
      if (left <= 0) break;
      await watch.changed(left);
    }
  } finally {
    watch.close();
  }
  throw new SluiceError(
    "unavailable",
    `GPU server ${server.name} has not answered yet; the GPU is given back as soon as it does, within a minute at most.`,
  );
}

function answer(lease: LeaseRow): GiveBackAnswer {
  const ended = lease.endedAt ?? lease.grantedAt;
  return {
    leaseId: lease.id,
    parkedBytes: lease.parkedBytes,
    heldSeconds: Math.max(0, (ended.getTime() - lease.grantedAt.getTime()) / 1000),
  };
}
