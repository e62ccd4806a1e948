import { asc, eq } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { fits, sizeInWords, smallerOf } from "#server/contracts/size-words.ts";
import type { ChosenSize, CustomSize } from "#server/contracts/workspace-size.ts";
import { teams, workspaceSizes } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { capacityOf } from "#server/launchers/capacity.ts";
import { ruleIn } from "./policy.ts";

type Row = typeof workspaceSizes.$inferSelect;
/** The columns of a workspace's row. */
export type SizeColumns = { sizeId: string | null; sizeCpuMilli: number | null; sizeMemoryBytes: number | null };

/**
 * What a workspace of the team gets when this is asked for; without a size the default one, or where that does not fit
 * the largest that does. Refused with what can be chosen instead.
 */
export async function chooseSize(
  ctx: Context,
  { teamId, launcher, size }: { teamId: string; launcher: string; size: ChosenSize | undefined },
): Promise<SizeColumns> {
  const most = await capacityOf(launcher);
  // Nobody changes a size between the choice and the workspace that remembers it.
  const offered = await offeredTo(ctx, teamId);
  const fitting = offered.filter((each) => fits(each, most));
  if (size === undefined) return columnsOf(fitting.find(({ isDefault }) => isDefault) ?? fitting.at(-1));
  if (typeof size === "string") return columnsOf(named(size, offered, fitting, most));
  const same = fitting.find((each) => each.cpuMilli === size.cpuMilli && each.memoryBytes === size.memoryBytes);
  if (same !== undefined) return columnsOf(same);
  await refuseCustom(ctx, { teamId, size, fitting, most });
  return { sizeId: null, sizeCpuMilli: size.cpuMilli, sizeMemoryBytes: size.memoryBytes };
}

type Sized = SizeColumns & { teamId: string; launcher: string };

/** What a workspace like this one gets: the same, chosen anew by today's rules; without one of its own the default. */
export async function sameSize(ctx: Context, like: Sized): Promise<SizeColumns> {
  return await chooseSize(ctx, { ...like, size: await sizeAsAsked(ctx, like) });
}

/** How a launch asks for what a workspace has: by its name, or by numbers; undefined where it has no size. */
export async function sizeAsAsked(ctx: Context, like: SizeColumns): Promise<ChosenSize | undefined> {
  const { sizeId, sizeCpuMilli: cpuMilli, sizeMemoryBytes: memoryBytes } = like;
  if (sizeId !== null) {
    const [row] = await ctx.db.select().from(workspaceSizes).where(eq(workspaceSizes.id, sizeId));
    if (row !== undefined) return row.name;
  }
  return cpuMilli === null || memoryBytes === null ? undefined : { cpuMilli, memoryBytes };
}

/** What a team may choose from, as it is offered. */
async function offeredTo(ctx: Context, teamId: string): Promise<Row[]> {
  const { position, cpuMilli, memoryBytes } = workspaceSizes;
  const rows = await ctx.db
    .select()
    .from(workspaceSizes)
    .orderBy(asc(position), asc(cpuMilli), asc(memoryBytes))
    .for("share");
  return rows.filter(({ teamIds }) => teamIds === null || teamIds.includes(teamId));
}

function columnsOf(row: Row | undefined): SizeColumns {
  return {
    sizeId: row?.id ?? null,
    sizeCpuMilli: row?.cpuMilli ?? null,
    sizeMemoryBytes: row?.memoryBytes ?? null,
  };
}

function named(asked: string, offered: Row[], fitting: Row[], most: CustomSize | undefined): Row {
  const same = ({ name }: Row) => name.toLowerCase() === asked.toLowerCase();
  const found = fitting.find(same);
  if (found !== undefined) return found;
  const known = fitting.map(({ name }) => name);
  const tooLarge = offered.find(same);
  if (tooLarge !== undefined && most !== undefined) {
    const limit = `A workspace can have ${sizeInWords(most)} here at most`;
    throw new SluiceError("refused", `size: ${limit}; ${tooLarge.name} is larger. ${choices(fitting)}`, { known });
  }
  throw new SluiceError("not-found", `size: Your team is offered no size "${asked}". ${choices(fitting)}`, { known });
}

type Refusal = { teamId: string; size: CustomSize; fitting: Row[]; most: CustomSize | undefined };

async function refuseCustom(ctx: Context, { teamId, size, fitting, most }: Refusal): Promise<void> {
  const rule = await ruleIn(ctx, teamId);
  const known = fitting.map(({ name }) => name);
  if (!rule.mayChoose) {
    const [team] = await ctx.db.select({ name: teams.name }).from(teams).where(eq(teams.id, teamId));
    const where = `In the team ${team?.name ?? teamId}`;
    const [who, ask] =
      rule.customSizes === "leads"
        ? [`${where} only leads and admins choose cores and memory freely.`, "a team lead"]
        : [`${where} nobody chooses cores and memory freely.`, "an admin"];
    throw new SluiceError("forbidden", `size: ${who} ${choices(fitting)} For another one ask ${ask}.`, { known });
  }
  const limit = smallerOf({ cpuMilli: rule.maxCpuMilli, memoryBytes: rule.maxMemoryBytes }, most);
  if (!fits(size, limit)) {
    throw new SluiceError("refused", `size: ${sizeInWords(limit)} at most can be chosen here. ${choices(fitting)}`, {
      known,
    });
  }
}

const choices = (rows: Row[]): string =>
  rows.length === 0
    ? "An admin has to offer a size that fits."
    : `Choose one of: ${rows.map((row) => `${row.name} (${sizeInWords(row)})`).join(", ")}.`;
