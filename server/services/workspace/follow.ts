import type { Context } from "#server/context.ts";
import { notify } from "#server/live.ts";
import { loadWorkspace } from "./load.ts";

/** So often is it said again while somebody follows. */
export const FOLLOWED_EVERY_MS = 10_000;

/** Somebody follows this workspace's steps and lines: for a while, what it prints while it runs is written among them. */
export async function follow(ctx: Context, { id }: { id: string }): Promise<void> {
  await loadWorkspace(ctx, id, "workspace.read");
  await notify(ctx.db, "followed", id);
}
