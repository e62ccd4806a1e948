/** What launchers find of workspaces that nobody knows: told on the page Health, and left alone, as homes are among it. */
import { isDeepStrictEqual } from "node:util";
import { ne, or } from "drizzle-orm";
import { audit, systemContext } from "#server/context.ts";
import type { Database } from "#server/db/client.ts";
import { workspaces } from "#server/db/schema/index.ts";
import type { Belonging, Launcher } from "#server/launchers/launcher.ts";
import type { Logger } from "#server/log.ts";
import { FIND_ORPHANS, lastFindings } from "#server/services/health/left-behind.ts";

/** So many are named; of further ones the number is told. */
const NAMED = 50;

/** Looks with every launcher; what one finds is a line of the log and an entry of the audit whenever it changes. */
export async function lookForOrphans(
  db: Database,
  launchers: ReadonlyMap<string, Launcher>,
  log: Logger,
): Promise<Belonging[]> {
  const known = await knownIds(db);
  const before = await lastFindings(db);
  const all: Belonging[] = [];
  for (const [launcher, one] of launchers) {
    const there = await one.belongings?.().catch((error: unknown) => {
      log.warn({ err: error, launcher }, "a launcher could not look for what belongs to no workspace");
      return undefined;
    });
    if (there === undefined) continue;
    // Some may have been launched while it looked, and some removed.
    const since = await knownIds(db);
    const found = there.filter(({ workspaceId }) => !known.has(workspaceId) && !since.has(workspaceId));
    all.push(...found);
    const told = { found: found.slice(0, NAMED), total: found.length };
    const { found: named = [], total = 0 } = before.get(launcher) ?? {};
    if (isDeepStrictEqual(told, { found: named, total })) continue;
    if (found.length > 0)
      log.warn({ launcher, found }, "found what belongs to no workspace; the page Health says what to do");
    await audit(systemContext(db), { action: FIND_ORPHANS, detail: { launcher, ...told } });
  }
  return all;
}

async function knownIds(db: Database): Promise<Set<string>> {
  const rows = await db
    .select({ id: workspaces.id })
    .from(workspaces)
    .where(or(ne(workspaces.desired, "removed"), ne(workspaces.observed, "removed")));
  return new Set(rows.map(({ id }) => id));
}
