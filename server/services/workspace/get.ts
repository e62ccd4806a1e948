import { eq } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { type WorkspaceInput, type WorkspaceView, workspaceInput } from "#server/contracts/workspace.ts";
import { workspaces } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";
import { readWorkspaces } from "#server/services/workspace/view.ts";

/** One workspace. */
export async function get(ctx: Context, raw: WorkspaceInput): Promise<WorkspaceView> {
  const { id } = parse(workspaceInput, raw);
  await loadWorkspace(ctx, id, "workspace.read");
  const [view] = await readWorkspaces(ctx, eq(workspaces.id, id));
  if (view === undefined) throw new SluiceError("not-found", "This workspace was removed just now.");
  return view;
}
