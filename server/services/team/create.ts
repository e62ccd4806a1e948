import { eq } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type CreateTeamInput, createTeamInput, type TeamView } from "#server/contracts/team.ts";
import { teams } from "#server/db/schema/index.ts";
import { isUniqueViolation, SluiceError } from "#server/errors.ts";
import { newId } from "#server/ids.ts";
import { parse } from "#server/parse.ts";
import { get } from "#server/services/team/get.ts";

/** A new team, without people or quotas: it can launch, but borrow nothing yet. */
export async function create(ctx: Context, raw: CreateTeamInput): Promise<TeamView> {
  authorize(ctx.principal, "team.create");
  const { name } = parse(createTeamInput, raw);
  const id = newId("team");
  try {
    return await inTransaction(ctx, async (tx) => {
      await tx.db.insert(teams).values({ id, name, createdAt: tx.now() });
      await audit(tx, { action: "team.create", subject: id, teamId: id, detail: { name } });
      return await get(tx, { id });
    });
  } catch (error) {
    if (isUniqueViolation(error)) throw await taken(ctx, name);
    throw error;
  }
}

async function taken(ctx: Context, name: string): Promise<SluiceError> {
  const [team] = await ctx.db.select().from(teams).where(eq(teams.name, name));
  if (!team?.archivedAt) return new SluiceError("conflict", `name: There is a team "${name}" already.`);
  return new SluiceError(
    "conflict",
    `name: There was a team "${name}": its accounts stay under that name. Bring it back, or choose another name.`,
    { archivedTeamId: team.id },
  );
}
