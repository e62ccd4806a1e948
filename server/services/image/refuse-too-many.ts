import { and, count, eq, inArray, isNull, ne } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { imageVersions, teams } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";

/** Of one team: checks take turns, and each proposal may keep a build of gigabytes. */
const WAITING = 3;
const UNDECIDED = 10;

/** Refuses one more check, or one more proposal, of a team that has as many as it may; holds the team's row. */
export async function refuseTooMany(tx: Context, teamId: string, what: "proposal" | "check"): Promise<void> {
  const [team] = await tx.db.select({ id: teams.id }).from(teams).where(eq(teams.id, teamId)).for("no key update");
  if (team === undefined) throw new SluiceError("not-found", "teamId: There is no such team.");
  const undecided = await tx.db
    .select({ check: imageVersions.check, n: count() })
    .from(imageVersions)
    .where(
      and(
        eq(imageVersions.teamId, teamId),
        isNull(imageVersions.approvedAt),
        ne(imageVersions.state, "retired"),
        inArray(imageVersions.check, ["waiting", "running", "passed", "failed"]),
      ),
    )
    .groupBy(imageVersions.check);
  const sum = (...checks: (string | null)[]) =>
    undecided.filter(({ check }) => checks.includes(check)).reduce((all, { n }) => all + n, 0);
  if (sum("waiting", "running") >= WAITING) {
    throw new SluiceError(
      "conflict",
      `${WAITING} proposals of this team are being checked or wait for it. Wait until one is done, or take one back.`,
    );
  }
  if (what === "proposal" && sum("waiting", "running", "passed", "failed") >= UNDECIDED) {
    throw new SluiceError(
      "conflict",
      `${UNDECIDED} proposals of this team await a decision. Withdraw proposals that are not needed.`,
    );
  }
}
