/** Leads are told when a lost server leaves their team less than it is guaranteed, and when all of that holds again. */
import { and, asc, eq, inArray, isNull, ne } from "drizzle-orm";
import { authorize, type Context, inTransaction } from "#server/context.ts";
import { gpuServers, gpus, memberships, notices } from "#server/db/schema/index.ts";
import { promisesNow } from "#server/scheduler/share.ts";
import type { World } from "#server/scheduler/types.ts";
import { loadWorld } from "#server/services/lease/world.ts";
import { backKey, type GuaranteeNow, guaranteeBack, guaranteeLess, lostFrom } from "#server/services/notice/words.ts";
import { writeNotices } from "#server/services/notice/write.ts";

/**
 * A gpud has been silent for too long to come back at once. Only devices that took leases before can be missed. Does
 * nothing when it has been heard after `lastHeard`.
 */
export async function tellOfLess(ctx: Context, input: { serverId: string; lastHeard: Date }): Promise<void> {
  authorize(ctx.principal, "gpu-server.control", { serverId: input.serverId });
  await inTransaction(ctx, async (tx) => {
    const [server] = await tx.db.select().from(gpuServers).where(eq(gpuServers.id, input.serverId)).for("update");
    if (server?.state !== "lost" || server.drainedAt !== null) return;
    if ((server.lastSeenAt?.getTime() ?? 0) > input.lastHeard.getTime()) return;
    const missed = await tx.db
      .select({ id: gpus.id, gpuType: gpus.gpuType })
      .from(gpus)
      .where(and(eq(gpus.serverId, server.id), eq(gpus.state, "active"), isNull(gpus.drainedAt)));
    const missedIds = new Set(missed.map(({ id }) => id));
    const less: GuaranteeNow[] = [];
    for (const gpuType of new Set(missed.map((device) => device.gpuType))) {
      const world = await loadWorld(tx.db, gpuType, tx.now());
      const devices = world.devices.map((device) =>
        missedIds.has(device.id) ? { ...device, state: "open" as const } : device,
      );
      const before = guaranteesIn({ ...world, devices });
      for (const now of guaranteesIn(world).values()) {
        if (now.nowMilli < (before.get(now.teamId)?.nowMilli ?? 0)) less.push(now);
      }
    }
    const teamIds = less.map(({ teamId }) => teamId);
    if (teamIds.length === 0) return;
    const leads = await tx.db
      .select()
      .from(memberships)
      .where(and(inArray(memberships.teamId, teamIds), eq(memberships.role, "lead")));
    await writeNotices(
      tx,
      less.flatMap((now) =>
        leads
          .filter(({ teamId }) => teamId === now.teamId)
          .map(({ userId }) => guaranteeLess(userId, server, input.lastHeard, now)),
      ),
    );
  });
}

/** Whoever was last told of less is told once that it is over: the server is not lost any more, and nothing is missing. */
export async function tellOfBack(ctx: Context): Promise<void> {
  authorize(ctx.principal, "gpu-server.control");
  const open = await stillLess(ctx);
  if (open.length === 0) return;
  const there = await ctx.db
    .select({ id: gpuServers.id })
    .from(gpuServers)
    .where(
      and(
        inArray(
          gpuServers.id,
          open.map(({ serverId }) => serverId),
        ),
        ne(gpuServers.state, "lost"),
      ),
    );
  const thereIds = new Set(there.map(({ id }) => id));
  const over = open.filter(({ serverId }) => thereIds.has(serverId));
  const guarantees = new Map<string, Map<string, GuaranteeNow>>();
  for (const gpuType of new Set(over.map((one) => one.gpuType))) {
    guarantees.set(gpuType, guaranteesIn(await loadWorld(ctx.db, gpuType, ctx.now())));
  }
  await writeNotices(
    ctx,
    over.flatMap(({ userId, key, teamId, gpuType }) => {
      const now = guarantees.get(gpuType)?.get(teamId);
      return now === undefined || now.milli === 0 || now.nowMilli < now.milli ? [] : [guaranteeBack(userId, key, now)];
    }),
  );
}

type Less = { userId: string; key: string; serverId: string; teamId: string; gpuType: string };

/** What each person was last told of each guarantee, where that was of less. */
async function stillLess(ctx: Context): Promise<Less[]> {
  const told = await ctx.db
    .select({ userId: notices.userId, key: notices.key })
    .from(notices)
    .where(eq(notices.kind, "guarantee"))
    .orderBy(asc(notices.createdAt), asc(notices.id));
  const keys = new Set(told.map(({ userId, key }) => `${userId} ${key}`));
  const last = new Map<string, Less>();
  for (const { userId, key } of told) {
    const lost = lostFrom(key);
    if (lost !== undefined) last.set(`${userId} ${lost.teamId} ${lost.gpuType}`, { userId, key, ...lost });
  }
  return [...last.values()].filter(({ userId, key }) => !keys.has(`${userId} ${backKey(key)}`));
}

function guaranteesIn(world: World): Map<string, GuaranteeNow> {
  const { quotas, guarantees } = promisesNow(world);
  return new Map(
    [...quotas.values()].map(({ teamId, teamName, guaranteedMilli }) => [
      teamId,
      { teamId, teamName, gpuType: world.gpuType, nowMilli: guarantees.get(teamId) ?? 0, milli: guaranteedMilli },
    ]),
  );
}
