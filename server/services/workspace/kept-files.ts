/** Removed workspaces with kept files. Everything else in the product treats them as gone. */
import { and, eq, isNotNull, ne, or, type SQL } from "drizzle-orm";
import { workspaces } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import type { WorkspaceRow } from "./load.ts";

/** When the files of a workspace that is removed now are deleted; null: at once. */
export function filesKeptUntil(now: Date): Date | null {
  const days = env().SLUICE_REMOVED_WORKSPACE_DAYS;
  return days === 0 ? null : new Date(now.getTime() + days * 86_400_000);
}

/** Whether a removed workspace still has its files, for now. */
export function keepsFiles(row: Pick<WorkspaceRow, "desired" | "filesKeptUntil">, now: Date): boolean {
  return row.desired === "removed" && row.filesKeptUntil !== null && row.filesKeptUntil > now;
}

/** Workspaces that are removed and can be restored. */
export const isRestorable = (): SQL | undefined =>
  and(eq(workspaces.desired, "removed"), isNotNull(workspaces.filesKeptUntil));

/** Workspaces that exist or can be restored; their dependencies must stay. */
export const isThereOrRestorable = (): SQL | undefined =>
  or(ne(workspaces.desired, "removed"), isNotNull(workspaces.filesKeptUntil));
