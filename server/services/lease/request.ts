import { eq } from "drizzle-orm";
import type { WorkspacePrincipal } from "#server/auth/principal.ts";
import { authorize, type Context } from "#server/context.ts";
import { parseAmounts } from "#server/contracts/amount.ts";
import {
  type LeaseReason,
  type LeaseRequestAnswer,
  type LeaseRequestInput,
  leaseRequestInput,
} from "#server/contracts/lease.ts";
import { gpuServers, gpus } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { ask } from "./advance-together.ts";
import { standingOf } from "./standing.ts";

/**
 * Asks for a GPU: it takes its place in the queue, and the round of its GPU type grants it, refuses it or lets it wait.
 * The same key again is the same request, in whatever state it is by then, and at most one lease. Requests that come
 * while a round runs share the next one.
 */
export async function request(ctx: Context, raw: LeaseRequestInput): Promise<LeaseRequestAnswer> {
  const input = parse(leaseRequestInput, raw);
  const principal = workspacePrincipal(ctx);
  authorize(ctx.principal, "lease.request", { workspaceId: principal.workspaceId });
  const { workspace, who, longestSeconds, knownTypes, needs } = await standingOf(ctx.db).join(principal.workspaceId);
  if (workspace === undefined || workspace.desired !== "running") {
    throw new SluiceError("conflict", "This workspace is being stopped and cannot borrow a GPU. Start it again first.");
  }
  const refused = (reason: LeaseReason): LeaseRequestAnswer => ({
    state: "refused",
    requestId: input.requestId,
    reason,
  });
  if (workspace.gpuPolicy === "never") {
    const message = "This workspace borrows no GPU: its GPU policy is never.";
    return refused({ rule: "gpu-policy", message, hint: "its owner changes that under Settings in the portal" });
  }
  const parsed = parseAmounts(input.amount, input.memory, workspace.defaultAmount);
  if (!parsed.ok) return refused(parsed.reason);
  const type = await gpuTypeOf(ctx, input, workspace.gpuType, knownTypes);
  if (!type.ok) return refused(type.reason);
  return await ask(type.gpuType, { ctx, principal, input, amount: parsed.amount, who, longestSeconds, needs });
}

export function workspacePrincipal(ctx: Context): WorkspacePrincipal {
  if (ctx.principal.kind === "workspace") return ctx.principal;
  throw new SluiceError("forbidden", "Only a workspace borrows GPUs. Run %gpu attach in a notebook.");
}

type TypeChoice = { ok: true; gpuType: string } | { ok: false; reason: LeaseReason };

/** The type asked for, the pinned device's, or the workspace's own. */
async function gpuTypeOf(
  ctx: Context,
  input: Pick<LeaseRequestInput, "gpuType" | "pinnedGpuId">,
  fallback: string,
  known: string[],
): Promise<TypeChoice> {
  const fresh = "restart the notebook to start without the parked memory";
  if (input.pinnedGpuId !== undefined) {
    const [pinned] = await ctx.db
      .select({ gpuType: gpus.gpuType, state: gpuServers.state })
      .from(gpus)
      .innerJoin(gpuServers, eq(gpuServers.id, gpus.serverId))
      .where(eq(gpus.id, input.pinnedGpuId));
    if (pinned === undefined || pinned.state === "removed") {
      const message =
        "The device that held this notebook's parked memory has left the pool; the parked memory is lost.";
      return { ok: false, reason: { rule: "pinned", message, hint: fresh } };
    }
    if (input.gpuType !== undefined && input.gpuType !== pinned.gpuType) {
      const message = `This notebook is bound to ${pinned.gpuType}; restart the notebook to change the GPU type.`;
      return { ok: false, reason: { rule: "gpu-type", message } };
    }
    return { ok: true, gpuType: pinned.gpuType };
  }
  const gpuType = input.gpuType ?? fallback;
  if (known.includes(gpuType)) return { ok: true, gpuType };
  const message =
    known.length === 0
      ? `There is no GPU server in the pool yet, so no ${gpuType} can be borrowed.`
      : `There is no GPU type ${gpuType}. There is: ${known.join(", ")}.`;
  const hint = known[0] === undefined ? "ask an admin to add a GPU server" : `%gpu attach 0.5 --type ${known[0]}`;
  return { ok: false, reason: { rule: known.length === 0 ? "no-server" : "gpu-type", message, hint } };
}
