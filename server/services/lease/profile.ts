import { and, asc, eq, ne } from "drizzle-orm";
import { z } from "zod";
import { authorize, type Context } from "#server/context.ts";
import { gpuType } from "#server/contracts/common.ts";
import { type DeviceProfile, deviceProfile } from "#server/contracts/control.ts";
import { gpuServers, gpus } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { workspacePrincipal } from "./request.ts";

const profileInput = z.strictObject({ gpuType });
export type ProfileInput = z.infer<typeof profileInput>;

/** The recorded profile of a GPU type: what a client answers from before anything is attached. */
export async function profile(ctx: Context, raw: ProfileInput): Promise<DeviceProfile> {
  const input = parse(profileInput, raw);
  authorize(ctx.principal, "lease.status", { workspaceId: workspacePrincipal(ctx).workspaceId });
  const [row] = await ctx.db
    .select({ profile: gpus.profile })
    .from(gpus)
    .innerJoin(gpuServers, and(eq(gpuServers.id, gpus.serverId), ne(gpuServers.state, "removed")))
    .where(eq(gpus.gpuType, input.gpuType))
    .orderBy(asc(gpus.createdAt))
    .limit(1);
  if (row === undefined) {
    throw new SluiceError("unavailable", `No GPU server with ${input.gpuType} has joined yet. Try again when one has.`);
  }
  return deviceProfile.parse(row.profile);
}
