import { desc } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { compareNames } from "#server/contracts/names.ts";
import type { WhatIfList } from "#server/contracts/what-if.ts";
import { whatIfs } from "#server/db/schema/index.ts";
import { knownGpuTypes } from "#server/services/lease/world.ts";
import { readPresent, readTeamNames } from "./present.ts";
import { viewOf } from "./view.ts";

const RECENT = 10;

/** The pool of now, by GPU type, to begin a proposal from; and what was asked last. */
export async function list(ctx: Context): Promise<WhatIfList> {
  authorize(ctx.principal, "what-if.ask");
  const now = ctx.now().getTime();
  const gpuTypes = await knownGpuTypes(ctx.db);
  const [present, names, rows] = await Promise.all([
    readPresent(ctx, gpuTypes, { from: now - 1, to: now }),
    readTeamNames(ctx),
    ctx.db.select().from(whatIfs).orderBy(desc(whatIfs.createdAt)).limit(RECENT),
  ]);
  return {
    present: present.map(({ gpuType, devices, rules }) => ({
      gpuType,
      gpus: devices.length,
      quotas: rules.quotas
        .map(({ teamId, guaranteedMilli, limitMilli }) => {
          return { teamId, name: names.get(teamId) ?? teamId, guaranteedMilli, limitMilli };
        })
        .sort((a, b) => compareNames(a.name, b.name)),
    })),
    recent: rows.map(questionOf),
  };
}

/** Without the answer, which may be long. */
function questionOf(row: typeof whatIfs.$inferSelect): WhatIfList["recent"][number] {
  const { id, state, progress, message, question, askedAt } = viewOf({ ...row, result: null });
  return { id, state, progress, message, question, askedAt };
}
