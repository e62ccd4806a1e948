/** Leads are told when a server that is lost leaves their team less than it is guaranteed, and when it is back. */
import { and, eq, inArray, like } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { gpus, memberships, notices } from "#server/db/schema/index.ts";
import { promisesNow } from "#server/scheduler/share.ts";
import type { World } from "#server/scheduler/types.ts";
import { loadWorld } from "#server/services/lease/world.ts";
import { type GuaranteeNow, guaranteeBack, guaranteeLess, lostPrefix } from "#server/services/notice/words.ts";
import { writeNotices } from "#server/services/notice/write.ts";

type Server = { id: string; name: string };

/** In the transaction that found the server lost. */
export async function tellOfLess(ctx: Context, server: Server): Promise<void> {
  const types = await ctx.db.selectDistinct({ gpuType: gpus.gpuType }).from(gpus).where(eq(gpus.serverId, server.id));
  const less: GuaranteeNow[] = [];
  for (const { gpuType } of types) {
    const world = await loadWorld(ctx.db, gpuType, ctx.now());
    const devices = world.devices.map((device) =>
      device.serverId === server.id && device.state === "away" ? { ...device, state: "open" as const } : device,
    );
    const before = guaranteesIn({ ...world, devices });
    for (const now of guaranteesIn(world).values()) {
      if (now.nowMilli < (before.get(now.teamId)?.nowMilli ?? 0)) less.push(now);
    }
  }
  const teamIds = less.map(({ teamId }) => teamId);
  if (teamIds.length === 0) return;
  const leads = await ctx.db
    .select()
    .from(memberships)
    .where(and(inArray(memberships.teamId, teamIds), eq(memberships.role, "lead")));
  await writeNotices(
    ctx,
    less.flatMap((now) =>
      leads
        .filter(({ teamId }) => teamId === now.teamId)
        .map(({ userId }) => guaranteeLess(userId, server, ctx.now(), now)),
    ),
  );
}

/** In the transaction in which the server came back. Who was told of the loss is told once that it is over. */
export async function tellOfBack(ctx: Context, server: Server): Promise<void> {
  const prefix = lostPrefix(server);
  const told = await ctx.db
    .select({ userId: notices.userId, key: notices.key })
    .from(notices)
    .where(and(eq(notices.kind, "guarantee"), like(notices.key, `${prefix}%`)));
  const parts = told.map((one) => {
    const [, teamId = "", ...type] = one.key.slice(prefix.length).split("/");
    return { ...one, teamId, gpuType: type.join("/") };
  });
  const guarantees = new Map<string, Map<string, GuaranteeNow>>();
  for (const gpuType of new Set(parts.map((part) => part.gpuType))) {
    guarantees.set(gpuType, guaranteesIn(await loadWorld(ctx.db, gpuType, ctx.now())));
  }
  await writeNotices(
    ctx,
    parts.flatMap(({ userId, key, teamId, gpuType }) => {
      const now = guarantees.get(gpuType)?.get(teamId);
      return now === undefined ? [] : [guaranteeBack(userId, server, key, now)];
    }),
  );
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
