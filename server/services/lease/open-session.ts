import { randomUUID } from "node:crypto";
import { and, eq, sql } from "drizzle-orm";
import { z } from "zod";
import { authorize, type Context } from "#server/context.ts";
import { deviceProfile } from "#server/contracts/control.ts";
import { type OpenSessionAnswer, openSessionInput } from "#server/contracts/lease.ts";
import { gpus } from "#server/db/schema/pool.ts";
import { teamPolicies } from "#server/db/schema/sharing.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { endSentence } from "./ending.ts";
import { TOKEN_SECONDS } from "./policy.ts";
import { workspacePrincipal } from "./request.ts";
import type { Signer } from "./signer.ts";
import { leaseViewOf, ownLease } from "./view.ts";

const openSessionOfLeaseInput = z.strictObject({ leaseId: z.string().max(64), ...openSessionInput.shape });
export type OpenSessionOfLeaseInput = z.infer<typeof openSessionOfLeaseInput>;

/** A token with which one client process, and only the holder of this key, connects to the lease's gpud. */
export async function openSession(
  ctx: Context,
  raw: OpenSessionOfLeaseInput,
  signer: Signer,
): Promise<OpenSessionAnswer> {
  const input = parse(openSessionOfLeaseInput, raw);
  const { workspaceId } = workspacePrincipal(ctx);
  authorize(ctx.principal, "lease.open-session", { workspaceId });
  const placed = await ownLease(ctx.db, workspaceId, input.leaseId);
  const { lease, gpu, server } = placed;
  if (lease.state === "ended" || lease.state === "ending") {
    throw new SluiceError("conflict", endSentence(lease.endReason, lease.endNote), { endReason: lease.endReason });
  }
  if (lease.state === "unreachable" || server.dataAddress === null) {
    throw new SluiceError(
      "unavailable",
      `GPU server ${server.name} does not answer just now. Try again in a few seconds.`,
    );
  }
  const [policy] = await ctx.db.select().from(teamPolicies).where(eq(teamPolicies.teamId, lease.teamId));
  const issued = Math.floor(ctx.now().getTime() / 1000);
  const sessionId = randomUUID();
  const token = await signer.sign({
    iss: "sluice",
    aud: `gpud:${server.id}`,
    sub: workspaceId,
    jti: randomUUID(),
    iat: issued,
    exp: issued + TOKEN_SECONDS,
    sid: sessionId,
    cnf: { ed25519: input.publicKey },
    lease: {
      id: lease.id,
      epoch: lease.epoch,
      deviceUuid: gpu.uuid,
      milli: lease.milli,
      ...(policy?.computeCeiling === "share" && { ceilingMilli: lease.milli }),
      memoryBytes: lease.memoryBytes,
      gpuType: lease.gpuType,
      expiresAt: Math.floor(lease.expiresAt.getTime() / 1000),
    },
  });
  return {
    token,
    sessionId,
    address: server.dataAddress,
    tlsFingerprint: server.tlsFingerprint,
    ...(!hasDriver(gpu) && { hardwareTypes: await hardwareTypes(ctx.db) }),
    lease: leaseViewOf(placed),
  };
}

/** The software GPU's profile names no driver. */
function hasDriver({ profile }: { profile: unknown }): boolean {
  return deviceProfile.parse(profile).driver !== undefined;
}

/** What somebody can ask for whose program holds machine code alone. */
async function hardwareTypes(db: Context["db"]): Promise<string[]> {
  const rows = await db
    .selectDistinct({ gpuType: gpus.gpuType })
    .from(gpus)
    .where(and(eq(gpus.state, "active"), sql`${gpus.profile} ->> 'driver' is not null`))
    .orderBy(gpus.gpuType);
  return rows.map(({ gpuType }) => gpuType);
}
