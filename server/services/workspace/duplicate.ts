import { eq } from "drizzle-orm";
import { audit, type Context, inTransaction } from "#server/context.ts";
import {
  type DuplicateWorkspaceInput,
  duplicateWorkspaceInput,
  type WorkspaceView,
} from "#server/contracts/workspace.ts";
import { workspaceDatasets, workspaces, workspaceVariables } from "#server/db/schema/index.ts";
import { newId } from "#server/ids.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { seal, unseal } from "#server/secrets.ts";
import { refuseDeactivated } from "#server/services/user/locked.ts";
import { get } from "#server/services/workspace/get.ts";
import { refuseBesideSampleData, refuseNotOffered } from "#server/services/workspace/launchable.ts";
import { loadWorkspace } from "#server/services/workspace/load.ts";
import { refuseTakenName } from "#server/services/workspace/refuse-taken-name.ts";
import { refuseTooManyRunning } from "#server/services/workspace/refuse-too-many.ts";
import { writeDatasets } from "#server/services/workspace-dataset/write.ts";
import { sameSize } from "#server/services/workspace-size/choose.ts";

/**
 * Launches another workspace like this one: the same version of the environment, size, amounts, idle limit, datasets and
 * variables, secrets among them. Files and installed packages stay where they are. Refused where a launch would be.
 */
export async function duplicate(ctx: Context, raw: DuplicateWorkspaceInput): Promise<WorkspaceView> {
  const input = parse(duplicateWorkspaceInput, raw);
  refuseBesideSampleData();
  return await refuseTakenName(input.name, () =>
    inTransaction(ctx, async (tx) => {
      const like = await loadWorkspace(tx, input.id, "workspace.duplicate");
      const { ownerId, teamId, imageVersionId, launcher, defaultAmount, gpuType, gpuPolicy, idleSeconds } = like;
      await refuseDeactivated(tx, ownerId);
      await refuseTooManyRunning(tx, ownerId);
      await refuseNotOffered(tx, imageVersionId, teamId);
      const id = newId("ws");
      const size = await sameSize(tx, like);
      await tx.db.insert(workspaces).values({
        ...{ id, name: input.name, ownerId, teamId, imageVersionId, launcher, defaultAmount, gpuType, gpuPolicy },
        ...{ ...size, idleSeconds, desired: "running", observed: "pending", createdAt: tx.now() },
      });
      const mounted = await tx.db
        .select({ datasetId: workspaceDatasets.datasetId })
        .from(workspaceDatasets)
        .where(eq(workspaceDatasets.workspaceId, like.id));
      await writeDatasets(
        tx,
        { id, teamId, launcher },
        mounted.map(({ datasetId }) => datasetId),
      );
      const variables = await tx.db
        .select()
        .from(workspaceVariables)
        .where(eq(workspaceVariables.workspaceId, like.id));
      if (variables.length > 0) {
        const copies = variables.map(async ({ sealed, ...each }) => ({
          ...each,
          workspaceId: id,
          // A sealed value is bound to its workspace.
          sealed: await seal(await unseal(sealed, `${like.id}/${each.name}`), `${id}/${each.name}`),
        }));
        await tx.db.insert(workspaceVariables).values(await Promise.all(copies));
      }
      await audit(tx, {
        action: "workspace.create",
        subject: id,
        teamId,
        detail: { name: input.name, like: like.id, variables: variables.map(({ name }) => name) },
      });
      await notify(tx.db, "workspace", id);
      return await get(tx, { id });
    }),
  );
}
