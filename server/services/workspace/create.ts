import { eq } from "drizzle-orm";
import type { UserPrincipal } from "#server/auth/principal.ts";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type CreateWorkspaceInput, createWorkspaceInput, type WorkspaceView } from "#server/contracts/workspace.ts";
import { workspaces } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { newId } from "#server/ids.ts";
import { launcherFor } from "#server/launchers/choice.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { readImages } from "#server/services/image/list.ts";
import { refuseDeactivated } from "#server/services/user/locked.ts";
import { refuseBesideSampleData } from "#server/services/workspace/launchable.ts";
import { refuseTakenName } from "#server/services/workspace/refuse-taken-name.ts";
import { refuseTooManyRunning } from "#server/services/workspace/refuse-too-many.ts";
import { readWorkspaces } from "#server/services/workspace/view.ts";
import { writeDatasets } from "#server/services/workspace-dataset/write.ts";
import { chooseSize } from "#server/services/workspace-size/choose.ts";

/** Writes what is wanted: a running workspace. The broker's reconciler brings it about. */
export async function create(ctx: Context, raw: CreateWorkspaceInput): Promise<WorkspaceView> {
  const { principal } = ctx;
  authorize(principal, "workspace.list");
  if (principal.kind !== "user") throw new SluiceError("forbidden", "Only a person can launch a workspace.");
  const input = parse(createWorkspaceInput, raw);
  const teamId = input.teamId ?? onlyTeam(principal);
  authorize(principal, "workspace.create", { teamId });
  refuseBesideSampleData();
  return await refuseTakenName(input.name, () =>
    inTransaction(ctx, async (tx) => {
      await refuseDeactivated(tx, principal.userId);
      await refuseTooManyRunning(tx, principal.userId);
      const version = await versionFor(tx, input, teamId);
      const id = newId("ws");
      const launcher = launcherOf(input.image);
      const size = await chooseSize(tx, { teamId, launcher, size: input.size });
      await tx.db.insert(workspaces).values({
        id,
        name: input.name,
        ownerId: principal.userId,
        teamId,
        imageVersionId: version,
        launcher,
        ...size,
        defaultAmount: input.defaultAmount,
        gpuType: input.gpuType,
        gpuPolicy: input.gpuPolicy,
        desired: "running",
        observed: "pending",
        createdAt: tx.now(),
      });
      const datasets = await writeDatasets(tx, { id, teamId, launcher }, input.datasets);
      await audit(tx, {
        action: "workspace.create",
        subject: id,
        teamId,
        detail: {
          name: input.name,
          image: input.image,
          version,
          ...size,
          ...(datasets.length > 0 ? { datasets } : {}),
        },
      });
      await notify(tx.db, "workspace", id);
      const [view] = await readWorkspaces(tx, eq(workspaces.id, id));
      if (view === undefined) throw new SluiceError("internal", "The workspace was not written.");
      return view;
    }),
  );
}

function onlyTeam(principal: UserPrincipal): string {
  const [first, ...others] = Object.keys(principal.teams);
  if (first === undefined)
    throw new SluiceError("forbidden", "You belong to no team yet. Ask an admin to add you to one.");
  if (others.length > 0) throw new SluiceError("invalid", "teamId: You belong to several teams; say which one.");
  return first;
}

type Wanted = { image: string; versionId?: string | undefined };

/** The version that is named, or the newest that the team gets. */
async function versionFor(ctx: Context, { image: name, versionId }: Wanted, teamId: string): Promise<string> {
  const [image] = await readImages(ctx, { name, teamIds: [teamId] });
  if (image !== undefined) {
    if (versionId === undefined || image.versions.some(({ id }) => id === versionId))
      return versionId ?? image.version.id;
    const message = `versionId: Your team is not offered this version of ${image.title}. Choose another, or none for the newest.`;
    throw new SluiceError("refused", message);
  }
  const known = (await readImages(ctx, { teamIds: [teamId] })).map((other) => other.name);
  const hint = known.length === 0 ? "The catalogue is empty." : `There is: ${known.join(", ")}.`;
  throw new SluiceError("not-found", `There is no environment "${name}". ${hint}`, { known });
}

function launcherOf(environment: string): string {
  const launcher = launcherFor(environment);
  if (launcher === undefined) throw new SluiceError("unavailable", "No launcher is configured (SLUICE_LAUNCHERS).");
  return launcher;
}
