import { and, eq, sql } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import {
  type ImageVersionView,
  type ProposalSource,
  type ProposeImageInput,
  proposeImageInput,
} from "#server/contracts/image.ts";
import { images, imageVersions, teams } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { newId } from "#server/ids.ts";
import { launcherFor } from "#server/launchers/choice.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { proposalVersion } from "./load.ts";
import { basesOfInstallation, definitionFolders } from "./register.ts";
import { readVersions } from "./version-view.ts";

/**
 * Proposes an environment, or the next version of one that the same team has proposed. An elected broker locks, builds
 * and tests it (server/broker/environment-check); nobody is offered it before an admin approves it.
 */
export async function propose(ctx: Context, raw: ProposeImageInput): Promise<ImageVersionView> {
  const { principal } = ctx;
  const { name, teamId, ...wanted } = parse(proposeImageInput, raw);
  authorize(principal, "image.propose", { teamId });
  if (principal.kind !== "user") throw new SluiceError("forbidden", "Only a person can propose an environment.");
  await refuseUnbuildable(name, wanted.source);
  return await inTransaction(ctx, async (tx) => {
    const [team] = await tx.db.select().from(teams).where(eq(teams.id, teamId));
    if (team === undefined) throw new SluiceError("not-found", "teamId: There is no such team.");
    const imageId = await environmentNamed(tx, { name, teamId, title: wanted.title, description: wanted.description });
    const id = newId("imv");
    await tx.db.insert(imageVersions).values({
      ...{ id, imageId, teamId, proposal: wanted, proposedBy: principal.userId, createdAt: tx.now() },
      version: proposalVersion(id),
      ...{ state: "proposed", check: "waiting", buildState: "pending" },
      spec: { env: {}, ...(wanted.needs === undefined ? {} : { needs: wanted.needs }) },
    });
    await audit(tx, { action: "image.propose", subject: id, teamId, detail: { name, ...wanted } });
    await notify(tx.db, "environment", id);
    const [view] = await readVersions(tx, eq(imageVersions.id, id));
    if (view === undefined) throw new SluiceError("internal", "The proposal was not written.");
    return view;
  });
}

async function refuseUnbuildable(name: string, source: ProposalSource): Promise<void> {
  const ours = await definitionFolders();
  if (ours.includes(name)) {
    throw new SluiceError(
      "conflict",
      `name: ${name} comes with this installation and changes when that is updated. Choose another name; ${name} can be its base.`,
    );
  }
  const launcher = launcherFor(name);
  const bases = (await basesOfInstallation()).map((base) => base.name);
  if (source.kind === "packages" && !bases.includes(source.base)) {
    throw new SluiceError("invalid", `source: Nothing begins with ${source.base}. There is: ${bases.join(", ")}.`);
  }
  const wants = source.kind === "packages" ? "local" : "kubernetes";
  if (launcher === wants) return;
  throw new SluiceError(
    "refused",
    source.kind === "packages"
      ? `source: ${name} would run on ${launcher ?? "no launcher"}, for which images are built elsewhere. Give an image by its digest.`
      : `source: ${name} would run on the launcher ${launcher ?? "(none)"}, which takes no images. Give packages.`,
  );
}

type Environment = { name: string; teamId: string; title: string; description: string };

/** The catalogue's entry; one that another team has is an admin's alone to go on with. */
async function environmentNamed(tx: Context, { name, teamId, title, description }: Environment): Promise<string> {
  const [made] = await tx.db
    .insert(images)
    .values({ id: newId("img"), name, title, description, createdAt: tx.now() })
    .onConflictDoNothing()
    .returning({ id: images.id });
  if (made !== undefined) return made.id;
  const [known] = await tx.db.select().from(images).where(eq(images.name, name)).for("update");
  if (known === undefined) throw new SluiceError("conflict", "name: Somebody has just taken it back. Try again.");
  const [other] = await tx.db
    .select({ id: imageVersions.id })
    .from(imageVersions)
    .where(and(eq(imageVersions.imageId, known.id), sql`${imageVersions.teamId} is distinct from ${teamId}`))
    .limit(1);
  if (other !== undefined && !(tx.principal.kind === "user" && tx.principal.isAdmin)) {
    throw new SluiceError("conflict", `name: Another team has an environment named ${name}. Choose another name.`);
  }
  return known.id;
}
