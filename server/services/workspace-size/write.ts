/** What adding and editing a size have in common. */
import { eq, inArray } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { teams, workspaceSizes } from "#server/db/schema/index.ts";
import { isUniqueViolation, SluiceError, violatedIndex } from "#server/errors.ts";

/** Runs it, and says so when it fails because the name is taken, or another size was made the default meanwhile. */
export async function refuseTaken<T>(name: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    if (violatedIndex(error) === "workspace_sizes_default") {
      throw new SluiceError("conflict", "Somebody else has made another size the default meanwhile. Reload the page.");
    }
    throw new SluiceError("conflict", `name: There is a size named "${name}" already. Choose another name.`);
  }
}

export async function refuseUnknownTeams(tx: Context, teamIds: string[] | null): Promise<void> {
  if (teamIds === null) return;
  const known = await tx.db.select({ id: teams.id }).from(teams).where(inArray(teams.id, teamIds));
  if (known.length !== new Set(teamIds).size) throw new SluiceError("not-found", "teamIds: There is no such team.");
}

/** Takes the default from the one that is it now; only what everybody is offered can be it. */
export async function prepareDefault(
  tx: Context,
  { isDefault, teamIds }: { isDefault: boolean; teamIds: string[] | null },
): Promise<void> {
  if (!isDefault) return;
  if (teamIds !== null) {
    throw new SluiceError(
      "invalid",
      "isDefault: The default size is offered to everybody; choose everybody, or another.",
    );
  }
  await tx.db.update(workspaceSizes).set({ isDefault: false }).where(eq(workspaceSizes.isDefault, true));
}
