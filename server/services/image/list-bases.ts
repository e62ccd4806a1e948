import { authorize, type Context } from "#server/context.ts";
import type { ImageBaseList } from "#server/contracts/image.ts";
import { basesOfInstallation } from "./register.ts";

/** What a proposed environment can begin with: those of this installation's that need nothing but an index. */
export async function listBases(ctx: Context): Promise<ImageBaseList> {
  authorize(ctx.principal, "image.list");
  return { bases: await basesOfInstallation() };
}
