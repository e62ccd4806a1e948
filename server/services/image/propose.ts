import { and, desc, eq, not } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import {
  type ImageVersionView,
  type ProposalSource,
  type ProposeImageInput,
  proposeImageInput,
} from "#server/contracts/image.ts";
import { images, imageVersions } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { newId } from "#server/ids.ts";
import { launcherFor } from "#server/launchers/choice.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { proposalVersion } from "./load.ts";
import { withdrawn } from "./order.ts";
import { refuseTooMany } from "./refuse-too-many.ts";
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
    await refuseTooMany(tx, teamId, "proposal");
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

/** The catalogue's entry. Its name is the team's as long as that has a proposal or a version of it. */
async function environmentNamed(tx: Context, { name, teamId, title, description }: Environment): Promise<string> {
  const [made] = await tx.db
    .insert(images)
    .values({ id: newId("img"), name, title, description, createdAt: tx.now() })
    .onConflictDoNothing()
    .returning({ id: images.id });
  if (made !== undefined) return made.id;
  const [known] = await tx.db.select().from(images).where(eq(images.name, name)).for("update");
  if (known === undefined) throw new SluiceError("conflict", "name: Somebody has just taken it back. Try again.");
  const owner = await ownerOf(tx, known.id);
  if (owner === undefined) {
    await tx.db.update(images).set({ title, description }).where(eq(images.id, known.id));
    return known.id;
  }
  // Nobody, an admin neither, mixes two teams' versions: each team's leads could then do nothing more under that name.
  const isAdmin = tx.principal.kind === "user" && tx.principal.isAdmin;
  if (owner.teamId === teamId || (owner.teamId === null && isAdmin)) return known.id;
  throw new SluiceError("conflict", `name: Another team has an environment named ${name}. Choose another name.`);
}

/** Whose an environment's name is: the team's of its latest version that is not taken back, null if that is gone. */
async function ownerOf(tx: Context, imageId: string): Promise<{ teamId: string | null } | undefined> {
  const [latest] = await tx.db
    .select({ teamId: imageVersions.teamId })
    .from(imageVersions)
    .where(and(eq(imageVersions.imageId, imageId), not(withdrawn)))
    .orderBy(desc(imageVersions.createdAt), desc(imageVersions.id))
    .limit(1);
  return latest;
}
