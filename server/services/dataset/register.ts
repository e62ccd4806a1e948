import { eq, sql } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import {
  type DatasetSource,
  type DatasetView,
  type RegisterDatasetInput,
  registerDatasetInput,
} from "#server/contracts/dataset.ts";
import { datasets, teams } from "#server/db/schema/index.ts";
import { isUniqueViolation, messageFor, SluiceError } from "#server/errors.ts";
import { newId } from "#server/ids.ts";
import { isBelow, resolveFolder } from "#server/launchers/local/dataset-folder.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { readDataset } from "./view.ts";

/**
 * Makes files known as a dataset of a team, or of everybody. A lead registers what the operator has set aside for the
 * team; what is mounted with the rights of a machine of the cluster (NFS, S3) is for an admin to register.
 */
export async function register(ctx: Context, raw: RegisterDatasetInput): Promise<DatasetView> {
  const { principal } = ctx;
  authorize(principal, "dataset.list");
  const input = parse(registerDatasetInput, raw);
  const { teamId } = input;
  authorize(principal, "dataset.register", { teamId });
  const isAdmin = principal.kind !== "user" || principal.isAdmin;
  if (!isAdmin && (input.source.kind === "nfs" || input.source.kind === "s3")) {
    throw new SluiceError("forbidden", "source: NFS exports and buckets are registered by an admin. Ask one.");
  }
  const source = await checkSource(ctx, { source: input.source, teamId, isAdmin });
  try {
    return await inTransaction(ctx, async (tx) => {
      if (source.kind === "folder") await refuseOverlap(tx, source.path, input.writable);
      const id = newId("dst");
      const { name, description, writable, prefetch } = input;
      await tx.db.insert(datasets).values({
        ...{ id, name, description, teamId, source, writable, prefetch },
        sizeBytes: source.kind === "folder" ? null : input.sizeBytes,
        registeredBy: principal.kind === "user" ? principal.userId : null,
        createdAt: tx.now(),
      });
      await audit(tx, { action: "dataset.register", subject: id, teamId, detail: { name, source, writable } });
      await notify(tx.db, "dataset", id);
      return await readDataset(tx, id);
    });
  } catch (error) {
    if (isUniqueViolation(error)) {
      const whose = teamId === undefined ? "Everybody has" : "This team has";
      throw new SluiceError("conflict", `name: ${whose} a dataset named ${input.name} already. Choose another name.`);
    }
    throw error;
  }
}

type Asked = { source: DatasetSource; teamId: string | undefined; isAdmin: boolean };

/** The source as it is kept: of a folder, where it really lies. */
async function checkSource(ctx: Context, { source, teamId, isAdmin }: Asked): Promise<DatasetSource> {
  const [team] = teamId === undefined ? [] : await ctx.db.select().from(teams).where(eq(teams.id, teamId));
  if (teamId !== undefined && team === undefined) throw new SluiceError("not-found", "teamId: There is no such team.");
  if (source.kind !== "folder") return source;
  try {
    return { ...source, path: await resolveFolder(source.path, { team: team?.name, teamOnly: !isAdmin }) };
  } catch (error) {
    throw new SluiceError("refused", `source: ${messageFor(error)}`);
  }
}

/** Who may write to a folder could put a link in the place of one below it, and so have anything mounted there. */
async function refuseOverlap(ctx: Context, folder: string, writable: boolean): Promise<void> {
  // Else two who register at one time do not see each other's folder.
  await ctx.db.execute(sql`lock table ${datasets} in share row exclusive mode`);
  const rows = await ctx.db
    .select({ path: sql<string>`${datasets.source}->>'path'`, writable: datasets.writable })
    .from(datasets)
    .where(sql`${datasets.source}->>'kind' = 'folder'`);
  for (const other of rows) {
    const same = folder === other.path && writable !== other.writable;
    const inside = other.writable && (same || isBelow(folder, other.path));
    const around = writable && (same || isBelow(other.path, folder));
    if (!inside && !around) continue;
    throw new SluiceError(
      "conflict",
      inside
        ? "source: This folder lies in a dataset that workspaces may write to. Choose one outside of it."
        : "source: Another dataset lies in this folder, so workspaces must not write to it. Choose another, or make it read-only.",
    );
  }
}
