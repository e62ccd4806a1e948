import { and, eq, inArray, ne, sql } from "drizzle-orm";
import type { WorkspacePrincipal } from "#server/auth/principal.ts";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import {
  type LeaseOwner,
  type LeaseReason,
  type LeaseRequestAnswer,
  type LeaseRequestInput,
  leaseRequestInput,
} from "#server/contracts/lease.ts";
import type { Transaction } from "#server/db/client.ts";
import { gpuServers, gpus, leaseRequests, leases, workspaces } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { newId } from "#server/ids.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { type Amount, formatMilli, parseAmount } from "#server/scheduler/amount.ts";
import { leastCharge } from "#server/scheduler/fits-now.ts";
import { advanceTogether } from "./advance-together.ts";
import { answerFor, ownRequest, queuedIn, type RequestRow } from "./answer.ts";
import { beginEnd } from "./ending.ts";
import { longestLeaseSeconds } from "./lease-length.ts";
import { DEFAULT_LEASE_SECONDS } from "./policy.ts";
import { knownGpuTypes, loadWorld } from "./world.ts";

const RANKS = { low: -1, normal: 0, high: 1 } as const;

/** Any number that no other lock of ours uses; the second half is the workspace. */
const WORKSPACE_LOCK = 7_411_012;

/**
 * Asks for a GPU: it takes its place in the queue, and the next round of its GPU type grants it, refuses it or lets it
 * wait. The same key again is the same request, in whatever state it is by then, and at most one lease.
 */
export async function request(ctx: Context, raw: LeaseRequestInput): Promise<LeaseRequestAnswer> {
  const input = parse(leaseRequestInput, raw);
  const principal = workspacePrincipal(ctx);
  authorize(ctx.principal, "lease.request", { workspaceId: principal.workspaceId });
  const [workspace, knownTypes, longest] = await Promise.all([
    runningWorkspace(ctx, principal.workspaceId),
    knownGpuTypes(ctx.db),
    longestLeaseSeconds(ctx, principal.teamId),
  ]);

  const refused = (reason: LeaseReason): LeaseRequestAnswer => ({
    state: "refused",
    requestId: input.requestId,
    reason,
  });
  const parsed = parseAmount(input.amount, workspace.defaultMilli);
  if (!parsed.ok) return refused(parsed.reason);
  const type = await gpuTypeOf(ctx, input, workspace.gpuType, knownTypes);
  if (!type.ok) return refused(type.reason);

  const charge = await chargeFor(ctx, type.gpuType, parsed.amount);
  if (!charge.ok) return refused(charge.reason);

  const asked = await inTransaction(ctx, async (tx) => {
    // One at a time in a workspace: the same key twice is one request, and one owner waits for one thing.
    await tx.db.execute(sql`select pg_advisory_xact_lock(${WORKSPACE_LOCK}, hashtext(${principal.workspaceId}))`);
    const now = tx.now();
    const [known] = await Promise.all([
      findByKey(tx.db, principal.workspaceId, input.requestId),
      settleEarlier(tx, principal.workspaceId, input.owner, input.requestId),
    ]);
    if (known !== undefined) return known;
    const row: RequestRow = {
      id: newId("req"),
      workspaceId: principal.workspaceId,
      teamId: principal.teamId,
      userId: principal.userId,
      idempotencyKey: input.requestId,
      gpuType: type.gpuType,
      milli: charge.milli,
      memoryBytes: charge.memoryBytes,
      guaranteedOnly: input.guaranteed ? 1 : 0,
      pinnedGpuId: input.pinnedGpuId ?? null,
      owner: input.owner,
      state: "queued",
      reason: null,
      createdAt: now,
      lastPolledAt: now,
      decidedAt: null,
      waitUntil: new Date(now.getTime() + input.waitSeconds * 1000),
      forSeconds: Math.min(input.forSeconds ?? DEFAULT_LEASE_SECONDS, longest),
      rank: RANKS[input.priority],
      kind: input.owner.kind === "process" ? "batch" : "interactive",
      maxDevices: input.maxDevices,
      needs: input.needs ?? null,
      keptGpuIds: null,
    };
    const detail = { amount: input.amount, milli: charge.milli, gpuType: type.gpuType, guaranteed: input.guaranteed };
    await Promise.all([
      tx.db.insert(leaseRequests).values(row),
      audit(tx, { action: "lease.request", subject: row.id, teamId: principal.teamId, detail }),
    ]);
    return row;
  });
  if (asked.state !== "queued") return await answerFor(ctx.db, asked, ctx.now());

  const { world, granted } = await advanceTogether(ctx.db, type.gpuType);
  if (granted.has(asked.id)) return await answerFor(ctx.db, { ...asked, state: "granted" }, ctx.now());
  const stillWaits = world.queue.some((waiting) => waiting.requestId === asked.id);
  if (stillWaits && input.waitSeconds > 0) return queuedIn(world, asked, ctx.now());
  if (stillWaits) await refuseToWait(ctx, asked, queuedIn(world, asked, ctx.now()));
  return await answerFor(ctx.db, await ownRequest(ctx.db, principal.workspaceId, asked.id), ctx.now());
}

/** Nobody waits for a request that may not wait; one that was granted meanwhile stays granted. */
async function refuseToWait(ctx: Context, row: RequestRow, answer: LeaseRequestAnswer): Promise<void> {
  if (answer.state !== "queued") return;
  await ctx.db
    .update(leaseRequests)
    .set({ state: "refused", reason: answer.reason, decidedAt: ctx.now() })
    .where(and(eq(leaseRequests.id, row.id), eq(leaseRequests.state, "queued")));
}

export function workspacePrincipal(ctx: Context): WorkspacePrincipal {
  if (ctx.principal.kind === "workspace") return ctx.principal;
  throw new SluiceError("forbidden", "Only a workspace borrows GPUs. Run %gpu attach in a notebook.");
}

async function runningWorkspace(ctx: Context, workspaceId: string) {
  const [workspace] = await ctx.db.select().from(workspaces).where(eq(workspaces.id, workspaceId)).limit(1);
  if (workspace === undefined || workspace.desired !== "running") {
    throw new SluiceError("conflict", "This workspace is being stopped and cannot borrow a GPU. Start it again first.");
  }
  return workspace;
}

async function findByKey(db: Transaction, workspaceId: string, key: string): Promise<RequestRow | undefined> {
  const [row] = await db
    .select()
    .from(leaseRequests)
    .where(and(eq(leaseRequests.workspaceId, workspaceId), eq(leaseRequests.idempotencyKey, key)))
    .limit(1);
  return row;
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

type Charge = { ok: true; milli: number; memoryBytes: number } | { ok: false; reason: LeaseReason };

/** Compute in thousandths; a memory amount is charged as the part of a device that it takes. */
async function chargeFor(ctx: Context, gpuType: string, amount: Amount): Promise<Charge> {
  if (amount.kind === "compute") return { ok: true, milli: amount.milli, memoryBytes: 0 };
  const world = await loadWorld(ctx.db, gpuType, ctx.now());
  if (world.devices.every((device) => device.state === "gone")) {
    const message = `No GPU server with ${gpuType} has joined yet, so memory cannot be counted in parts of a GPU.`;
    return { ok: false, reason: { rule: "no-server", message, hint: "%gpu attach 0.5 waits for one" } };
  }
  return { ok: true, milli: leastCharge({ milli: 1, memoryBytes: amount.bytes }, world), memoryBytes: amount.bytes };
}

/**
 * One owner has one GPU at a time. What an interrupted attach or a lost connection left (a place in the queue, a lease
 * that nothing is connected to) makes room for the new one.
 */
async function settleEarlier(
  tx: Context & { db: Transaction },
  workspaceId: string,
  owner: LeaseOwner,
  requestId: string,
): Promise<void> {
  const same = (column: typeof leases.owner | typeof leaseRequests.owner) =>
    sql`(${column}->>'pid')::bigint = ${owner.pid} and (${column}->>'startTime')::bigint = ${owner.startTime}`;
  const [left, held] = await Promise.all([
    tx.db
      .update(leaseRequests)
      .set({ state: "cancelled", decidedAt: tx.now() })
      .where(
        and(
          eq(leaseRequests.workspaceId, workspaceId),
          eq(leaseRequests.state, "queued"),
          ne(leaseRequests.idempotencyKey, requestId),
          same(leaseRequests.owner),
        ),
      )
      .returning({ id: leaseRequests.id }),
    tx.db
      .select({ lease: leases, key: leaseRequests.idempotencyKey })
      .from(leases)
      .innerJoin(leaseRequests, eq(leaseRequests.id, leases.requestId))
      .where(
        and(
          eq(leases.workspaceId, workspaceId),
          inArray(leases.state, ["granted", "active", "unreachable"]),
          ne(leaseRequests.idempotencyKey, requestId),
          same(leases.owner),
        ),
      ),
  ]);
  const inUse = held.find(({ lease }) => lease.state === "active" && lease.disconnectedAt === null)?.lease;
  if (inUse !== undefined) {
    const message = `This notebook already has ${formatMilli(inUse.milli)} ${inUse.gpuType}. Run %gpu detach first to change the amount.`;
    throw new SluiceError("conflict", message, { leaseId: inUse.id });
  }
  for (const { lease } of held) {
    const reason = lease.state === "granted" ? "never used" : "given back";
    await beginEnd(tx, [lease.id], { reason, mode: "kill", note: "replaced by a new request" });
  }
  for (const { id } of left) await notify(tx.db, "lease", id);
}
