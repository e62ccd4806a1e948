/** What launchers find of workspaces that nobody knows: told, and left alone, as homes are among it. */
import { ne, or } from "drizzle-orm";
import { audit, systemContext } from "#server/context.ts";
import type { Database } from "#server/db/client.ts";
import { workspaces } from "#server/db/schema/index.ts";
import type { Launcher, Orphan } from "#server/launchers/launcher.ts";
import type { Logger } from "#server/log.ts";

/** Looks with every launcher; each one's finding is one line of the log and one entry of the audit. */
export async function lookForOrphans(
  db: Database,
  launchers: ReadonlyMap<string, Launcher>,
  log: Logger,
): Promise<Orphan[]> {
  const rows = await db
    .select({ id: workspaces.id })
    .from(workspaces)
    .where(or(ne(workspaces.desired, "removed"), ne(workspaces.observed, "removed")));
  const known = new Set(rows.map(({ id }) => id));
  const all: Orphan[] = [];
  for (const [launcher, one] of launchers) {
    const found = await one.orphans?.(known).catch((error: unknown) => {
      log.warn({ err: error, launcher }, "a launcher could not look for what belongs to no workspace");
      return [];
    });
    if (found === undefined || found.length === 0) continue;
    all.push(...found);
    log.warn({ launcher, found }, "found what belongs to no workspace; delete it when its files are not needed");
    await audit(systemContext(db), {
      action: "workspace.find-orphans",
      detail: { launcher, found: found.slice(0, 50) },
    });
  }
  return all;
}
