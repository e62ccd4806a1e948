/** One-time links and codes: only their hash is kept, and one use ends them. */
import { and, eq, gt, isNull } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { oneTimeCodes } from "#server/db/schema/index.ts";
import { hashSecret, newCode, newId, newSecret } from "#server/ids.ts";

export type OneTimeCode = typeof oneTimeCodes.$inferSelect;
type Kind = OneTimeCode["kind"];
type Binding = Partial<Pick<OneTimeCode, "userId" | "teamId" | "workspaceId" | "sessionId" | "email" | "role">>;

/** Makes a code; returns it this once. */
export async function createCode(
  ctx: Context,
  kind: Kind,
  lifeSeconds: number,
  binding: Binding = {},
): Promise<{ id: string; code: string; expiresAt: Date }> {
  const code = kind === "gpud-join" ? newSecret("slj") : newCode();
  const expiresAt = new Date(ctx.now().getTime() + lifeSeconds * 1000);
  const id = newId("otc");
  await ctx.db
    .insert(oneTimeCodes)
    .values({ id, kind, secretHash: hashSecret(code), createdAt: ctx.now(), expiresAt, ...binding });
  return { id, code, expiresAt };
}

const valid = (ctx: Context, kind: Kind, code: string) =>
  and(
    eq(oneTimeCodes.kind, kind),
    eq(oneTimeCodes.secretHash, hashSecret(code)),
    isNull(oneTimeCodes.usedAt),
    gt(oneTimeCodes.expiresAt, ctx.now()),
  );

/** Uses a code up. Of any number that try at once, one gets it; undefined for every other, and when it is over. */
export async function useCode(ctx: Context, kind: Kind, code: string): Promise<OneTimeCode | undefined> {
  const [used] = await ctx.db
    .update(oneTimeCodes)
    .set({ usedAt: ctx.now() })
    .where(valid(ctx, kind, code))
    .returning();
  return used;
}

/** What a code is for, without using it. */
export async function peekCode(ctx: Context, kind: Kind, code: string): Promise<OneTimeCode | undefined> {
  const [found] = await ctx.db
    .select()
    .from(oneTimeCodes)
    .where(valid(ctx, kind, code));
  return found;
}
