import { and, eq, isNull, sql } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import type { Transaction } from "#server/db/client.ts";
import { workspaces } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { SluiceError } from "#server/errors.ts";

/** Any number that no other lock of ours uses; the second half is the person. */
const OWNER_LOCK = 7_411_018;

/** Refuses to run one more workspace of a person who has as many as the installation allows. */
export async function refuseTooManyRunning(tx: Context & { db: Transaction }, ownerId: string): Promise<void> {
  // Launches of one person take turns: each counts those before it.
  await tx.db.execute(sql`select pg_advisory_xact_lock(${OWNER_LOCK}, hashtext(${ownerId}))`);
  const most = env().SLUICE_RUNNING_WORKSPACES;
  // A pod is the cluster's, and nobody launched it here.
  const running = and(eq(workspaces.ownerId, ownerId), eq(workspaces.desired, "running"), isNull(workspaces.podUid));
  if ((await tx.db.$count(workspaces, running)) < most) return;
  const isOwn = tx.principal.kind === "user" && tx.principal.userId === ownerId;
  const has = isOwn ? "You have" : "The owner of this workspace has";
  const message = `${has} ${most} running workspaces, which is the limit for one person. Stop one first.`;
  throw new SluiceError("conflict", message);
}
