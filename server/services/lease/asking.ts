/** A request before its round: what it makes room for among its own, what it will be charged, and its row. */
import { and, count, eq, gte, inArray, sql } from "drizzle-orm";
import type { z } from "zod";
import type { WorkspacePrincipal } from "#server/auth/principal.ts";
import type { Context } from "#server/context.ts";
import { type Amount, formatMilli } from "#server/contracts/amount.ts";
import type { DeviceNeeds, LeaseOwner, LeaseReason, leaseRequestInput } from "#server/contracts/lease.ts";
import { among } from "#server/db/among.ts";
import type { Transaction } from "#server/db/client.ts";
import { leaseRequests, leases } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { newId } from "#server/ids.ts";
import { notifyAll } from "#server/live.ts";
import { compareVersions } from "#server/scheduler/allowed.ts";
import { leastCharge } from "#server/scheduler/fits-now.ts";
import type { World } from "#server/scheduler/types.ts";
import type { RequestRow } from "./answer.ts";
import { beginEnds } from "./ending.ts";
import { kindOfWork } from "./owners.ts";
import { DEFAULT_LEASE_SECONDS } from "./policy.ts";

/**
 * Maximum requests of one workspace in the queue. Each owner waits once, but a program can make up owners, and each
 * scheduling cycle looks at every request.
 */
export const MOST_QUEUED = 64;

const RANKS = { low: -1, normal: 0, high: 1 } as const;

type Tx = Context & { db: Transaction };

export type Ask = {
  ctx: Context;
  principal: WorkspacePrincipal;
  input: z.output<typeof leaseRequestInput>;
  amount: Amount;
  /** Name of the person. */
  who: string;
  longestSeconds: number;
  /** What its environment needs of a device. */
  needs: DeviceNeeds | null;
};

type Charge = { ok: true; milli: number; memoryBytes: number } | { ok: false; reason: LeaseReason };

/** Compute in thousandths; a memory amount is charged as the part of a device that it takes. */
export function chargeFor({ amount, needs }: Pick<Ask, "amount" | "needs">, world: World): Charge {
  if (amount.kind === "compute") return { ok: true, milli: amount.milli, memoryBytes: 0 };
  if (world.devices.every((device) => device.state === "gone")) {
    const message = `No GPU server with ${world.gpuType} has joined yet, so memory cannot be counted in parts of a GPU.`;
    return { ok: false, reason: { rule: "no-server", message, hint: "%gpu attach 0.5 waits for one" } };
  }
  const milli = amount.kind === "both" ? amount.milli : 1;
  const wanted = { milli, memoryBytes: amount.bytes, ...(needs !== null && { needs }) };
  return { ok: true, milli: leastCharge(wanted, world), memoryBytes: amount.bytes };
}

/** The row of a request that takes its place in the queue now. */
export function requestRow(
  { ctx, principal, input, longestSeconds, needs }: Ask,
  gpuType: string,
  charge: { milli: number; memoryBytes: number },
): RequestRow {
  const now = ctx.now();
  return {
    id: newId("req"),
    workspaceId: principal.workspaceId,
    teamId: principal.teamId,
    userId: principal.userId,
    idempotencyKey: input.requestId,
    gpuType,
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
    forSeconds: Math.min(input.forSeconds ?? DEFAULT_LEASE_SECONDS, longestSeconds),
    rank: RANKS[input.priority],
    kind: kindOfWork(input.owner),
    maxDevices: input.maxDevices,
    needs: bothNeeds(needs, input.needs),
    keptGpuIds: null,
  };
}

/** What the environment and the program need together; a zone that the program names is the one that counts. */
export function bothNeeds(one: DeviceNeeds | null, other: DeviceNeeds | undefined): DeviceNeeds | null {
  if (one === null || other === undefined) return one ?? other ?? null;
  const both = { ...one, ...other };
  if (both.minCudaVersion !== undefined)
    both.minCudaVersion = Math.max(one.minCudaVersion ?? 0, other.minCudaVersion ?? 0);
  if (both.minDriverVersion !== undefined)
    both.minDriverVersion = laterOf(one.minDriverVersion ?? "0", other.minDriverVersion ?? "0");
  if (both.maxRttUs !== undefined) {
    const none = Number.POSITIVE_INFINITY;
    both.maxRttUs = Math.min(one.maxRttUs ?? none, other.maxRttUs ?? none);
  }
  return both;
}

const laterOf = (one: string, other: string): string => (compareVersions(one, other) >= 0 ? one : other);

export type Settled = {
  /** Requests that came before under the same key. */
  known: ReadonlyMap<Ask, RequestRow>;
  /** Those whose owner has a GPU in use, or whose workspace has too many requests in the queue. */
  conflicts: ReadonlyMap<Ask, SluiceError>;
  /** Whether leases or the queue are not any more as they were. */
  changed: boolean;
};

/**
 * One owner has one GPU at a time. What an interrupted attach or a lost connection left (a place in the queue, a lease
 * that nothing is connected to) makes room for the new one. At most one request of a workspace.
 */
export async function settleEarlier(tx: Tx, asks: readonly Ask[]): Promise<Settled> {
  if (asks.length === 0) return { known: new Map(), conflicts: new Map(), changed: false };
  const byWorkspace = new Map(asks.map((one) => [one.principal.workspaceId, one]));
  const asked = JSON.stringify(
    asks.map(({ principal, input }) => {
      return {
        workspace: principal.workspaceId,
        key: input.requestId,
        pid: input.owner.pid,
        start: input.owner.startTime,
      };
    }),
  );
  const list = sql`json_to_recordset(${asked}::json) as asked (workspace text, key text, pid bigint, start bigint)`;
  const here = JSON.stringify([...byWorkspace.keys()]);
  const [rows, left, held, full] = await Promise.all([
    tx.db
      .select()
      .from(leaseRequests)
      .where(
        sql`${leaseRequests.id} = any(array(select (
          select id from lease_requests where workspace_id = asked.workspace and idempotency_key = asked.key) from ${list}))`,
      ),
    tx.db.execute<{ id: string }>(sql`
      update ${leaseRequests} set state = 'cancelled', decided_at = ${tx.now().toISOString()}::timestamptz
      from ${list}
      where ${leaseRequests.workspaceId} = asked.workspace and ${leaseRequests.state} = 'queued'
        and ${among(leaseRequests.workspaceId, here)}
        and ${leaseRequests.idempotencyKey} <> asked.key
        and (${leaseRequests.owner}->>'pid')::bigint = asked.pid
        and (${leaseRequests.owner}->>'startTime')::bigint = asked.start
      returning ${leaseRequests.id} as id`),
    tx.db
      .select({ lease: leases, key: leaseRequests.idempotencyKey })
      .from(leases)
      .innerJoin(leaseRequests, eq(leaseRequests.id, leases.requestId))
      .where(and(among(leases.workspaceId, here), inArray(leases.state, ["granted", "active", "unreachable"]))),
    // After the update above: a request that makes room for itself is not counted.
    tx.db
      .select({ workspaceId: leaseRequests.workspaceId })
      .from(leaseRequests)
      .where(and(among(leaseRequests.workspaceId, here), eq(leaseRequests.state, "queued")))
      .groupBy(leaseRequests.workspaceId)
      .having(gte(count(), MOST_QUEUED)),
  ]);
  const known = new Map<Ask, RequestRow>();
  for (const row of rows) {
    const one = byWorkspace.get(row.workspaceId);
    if (one) known.set(one, row);
  }
  const conflicts = new Map<Ask, SluiceError>();
  for (const { workspaceId } of full) {
    const one = byWorkspace.get(workspaceId);
    if (one !== undefined && one.input.waitSeconds > 0) conflicts.set(one, queueFull());
  }
  const replaced: typeof held = [];
  for (const item of held) {
    const one = byWorkspace.get(item.lease.workspaceId);
    if (one === undefined || item.key === one.input.requestId || !sameStart(item.lease.owner, one.input.owner))
      continue;
    if (item.lease.state === "active" && item.lease.disconnectedAt === null) conflicts.set(one, inUse(item.lease));
    else replaced.push(item);
  }
  await beginEnds(
    tx.db,
    replaced.flatMap(({ lease }) => {
      const one = byWorkspace.get(lease.workspaceId);
      if (one === undefined || conflicts.has(one)) return [];
      const reason = lease.state === "granted" ? ("never used" as const) : ("given back" as const);
      return [{ by: one.ctx, leaseId: lease.id, how: { reason, mode: "kill", note: "replaced by a new request" } }];
    }),
  );
  await notifyAll(
    tx.db,
    left.map(({ id }) => ({ topic: "lease" as const, id })),
  );
  return { known, conflicts, changed: left.length > 0 || replaced.length > 0 };
}

function sameStart(a: LeaseOwner, b: LeaseOwner): boolean {
  return a.pid === b.pid && a.startTime === b.startTime;
}

function queueFull(): SluiceError {
  const message = `This workspace already has ${MOST_QUEUED} requests in the queue, which is the limit. Withdraw one (%gpu detach where it waits), or wait until one is granted.`;
  return new SluiceError("refused", message);
}

function inUse({ id, milli, gpuType }: typeof leases.$inferSelect): SluiceError {
  const message = `This notebook already has ${formatMilli(milli)} ${gpuType}. Run %gpu detach first to change the amount.`;
  return new SluiceError("conflict", message, { leaseId: id });
}
