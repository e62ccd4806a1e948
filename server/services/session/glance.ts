import { authorize, type Context } from "#server/context.ts";
import type { Glance } from "#server/contracts/session.ts";
import { atAGlance } from "#server/services/lease/at-a-glance.ts";
import { list as listNotices } from "#server/services/notice/list.ts";
import { list as listStops } from "#server/services/stop/list.ts";

/** What the frame of every page shows of the person's own. */
export async function glance(ctx: Context): Promise<Glance> {
  authorize(ctx.principal, "session.read");
  const at = ctx.now().toISOString();
  const [held, { notices, unread }, stopped] = await Promise.all([atAGlance(ctx), listNotices(ctx), listStops(ctx)]);
  return { at, ...held, notices, unread, ...stopped };
}
