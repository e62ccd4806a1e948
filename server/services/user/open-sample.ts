import { and, eq } from "drizzle-orm";
import { createCode } from "#server/auth/one-time-code.ts";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type OpenSampleInput, type OpenSampleOutput, openSampleInput } from "#server/contracts/user.ts";
import { memberships, teams, users } from "#server/db/schema/index.ts";
import { env } from "#server/env.ts";
import { SluiceError } from "#server/errors.ts";
import { sampleOrigin } from "#server/http/sample-origin.ts";
import { newId } from "#server/ids.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";

const SAMPLE_SECONDS = 60;

/** A link that opens a window as the sample user, a member of one team with no password of its own. */
export async function openSample(ctx: Context, raw: OpenSampleInput = {}): Promise<OpenSampleOutput> {
  const input = parse(openSampleInput, raw);
  authorize(ctx.principal, "user.open-sample");
  return await inTransaction(ctx, async (tx) => {
    const wanted = input.teamId === undefined ? eq(teams.name, "demo") : eq(teams.id, input.teamId);
    const [team] = await tx.db.select().from(teams).where(wanted);
    if (team === undefined) throw new SluiceError("not-found", "There is no such team for the sample user.");
    const userId = await sampleUser(tx);
    await tx.db
      .insert(memberships)
      .values({ teamId: team.id, userId, role: "member", createdAt: tx.now() })
      .onConflictDoNothing();
    await notify(tx.db, "people", userId);
    // `sessionId` tells the new session which admin's session opened it.
    const sessionId = tx.principal.kind === "user" ? tx.principal.sessionId : undefined;
    const { code, expiresAt } = await createCode(tx, "sample", SAMPLE_SECONDS, { userId, teamId: team.id, sessionId });
    await audit(tx, { action: "user.open-sample", subject: userId, teamId: team.id });
    const { SLUICE_PORTAL_URL: portal } = env();
    const own = sampleOrigin(portal);
    return {
      url: `${own ?? new URL(portal).origin}/api/v1/users/sample/enter?code=${code}`,
      expiresAt: expiresAt.toISOString(),
      needsPrivateWindow: own === undefined,
    };
  });
}

async function sampleUser(tx: Context): Promise<string> {
  const person = { email: "sample@sluice.invalid", name: "Sample user", isSample: true };
  await tx.db
    .insert(users)
    .values({ id: newId("usr"), ...person, createdAt: tx.now() })
    .onConflictDoNothing();
  const [user] = await tx.db
    .select({ id: users.id })
    .from(users)
    .where(and(eq(users.email, person.email), eq(users.isSample, true)));
  if (user === undefined) throw new SluiceError("internal", "The sample user was not made.");
  return user.id;
}
