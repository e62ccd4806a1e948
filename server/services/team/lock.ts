import { eq } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import type { Transaction } from "#server/db/client.ts";
import { teams } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";

/** The team's row, in the strength that whoever adds something to the team waits for; take no GPU type's lock after it. */
export async function lockTeam(tx: Context & { db: Transaction }, id: string): Promise<typeof teams.$inferSelect> {
  const [team] = await tx.db.select().from(teams).where(eq(teams.id, id)).for("update");
  if (team === undefined) throw new SluiceError("not-found", "There is no such team.");
  return team;
}
