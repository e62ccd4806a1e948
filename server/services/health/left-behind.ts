import { desc, eq } from "drizzle-orm";
import { z } from "zod";
import type { Component } from "#server/contracts/health.ts";
import type { Database, Transaction } from "#server/db/client.ts";
import { auditEvents } from "#server/db/schema/index.ts";

/** The entry of the audit for what a launcher finds of workspaces that nobody knows; written when that changes. */
export const FIND_ORPHANS = "workspace.find-orphans";

const orphan = z.object({ kind: z.string(), namespace: z.string(), name: z.string(), workspaceId: z.string() });
const finding = z.object({ launcher: z.string(), found: z.array(orphan), total: z.int() });

type Finding = z.infer<typeof finding> & { at: Date };

/** So many entries are looked through for the last one of each launcher. */
const ENTRIES = 50;

/** What each launcher found last. */
export async function lastFindings(db: Database | Transaction): Promise<Map<string, Finding>> {
  const rows = await db
    .select({ at: auditEvents.at, detail: auditEvents.detail })
    .from(auditEvents)
    .where(eq(auditEvents.action, FIND_ORPHANS))
    .orderBy(desc(auditEvents.seq))
    .limit(ENTRIES);
  const last = new Map<string, Finding>();
  for (const { at, detail } of rows) {
    const read = finding.safeParse(detail);
    if (read.success && !last.has(read.data.launcher)) last.set(read.data.launcher, { ...read.data, at });
  }
  return last;
}

/** The same as parts of the installation that need a look, each with what to do. */
export async function leftBehind(db: Database): Promise<Component[]> {
  return [...(await lastFindings(db)).values()].flatMap(({ launcher, found, total, at }) => {
    const about = { kind: "orphan", state: "warning", version: null, seenAt: at.toISOString() } as const;
    const parts: Component[] = found.map(({ kind, namespace, name, workspaceId }) => ({
      ...about,
      name: `${kind} ${namespace}/${name}`,
      detail: `belongs to no workspace that is known here (${workspaceId}), on ${launcher}`,
      next: whatToDo(kind, namespace, name),
    }));
    const more = total - found.length;
    if (more === 0) return parts;
    const next = "They are named here when those above are gone.";
    return [...parts, { ...about, name: `${more} more on ${launcher}`, detail: "belong to no workspace either", next }];
  });
}

function whatToDo(kind: string, namespace: string, name: string): string {
  const word = kind.toLowerCase();
  switch (kind) {
    case "PersistentVolumeClaim":
      return `It holds a home folder. Look whether anybody needs its files; if not: kubectl --namespace ${namespace} delete ${word} ${name}`;
    case "PersistentVolume":
      return `What it refers to stays when it goes: kubectl delete ${word} ${name}`;
    default:
      return `Nothing here uses it: kubectl --namespace ${namespace} delete ${word} ${name}`;
  }
}
