import { eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type TeamInput, type TeamView, teamInput } from "#server/contracts/team.ts";
import { teams } from "#server/db/schema/index.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { get } from "./get.ts";
import { lockTeam } from "./lock.ts";

/** Brings a team back that was put away: with its policy and all of its past, and without people and promises. */
export async function restore(ctx: Context, raw: TeamInput): Promise<TeamView> {
  const { id } = parse(teamInput, raw);
  authorize(ctx.principal, "team.archive");
  return await inTransaction(ctx, async (tx) => {
    const { name, archivedAt } = await lockTeam(tx, id);
    if (archivedAt !== null) {
      await tx.db.update(teams).set({ archivedAt: null }).where(eq(teams.id, id));
      await audit(tx, { action: "team.restore", subject: id, teamId: id, detail: { name } });
      await notify(tx.db, "pool", id);
    }
    return await get(tx, { id });
  });
}
