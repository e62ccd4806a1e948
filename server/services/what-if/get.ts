import { eq } from "drizzle-orm";
import { authorize, type Context } from "#server/context.ts";
import { type WhatIfGetInput, type WhatIfView, whatIfGetInput } from "#server/contracts/what-if.ts";
import { whatIfs } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { viewOf } from "./view.ts";

/** A question with its answer, or how far that is. */
export async function get(ctx: Context, raw: WhatIfGetInput): Promise<WhatIfView> {
  const { id } = parse(whatIfGetInput, raw);
  authorize(ctx.principal, "what-if.ask");
  const [row] = await ctx.db.select().from(whatIfs).where(eq(whatIfs.id, id));
  if (row === undefined) throw new SluiceError("not-found", "There is no such question any more. Ask it again.");
  return viewOf(row);
}
