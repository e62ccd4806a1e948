import { authorize, type Context } from "#server/context.ts";
import { SluiceError } from "#server/errors.ts";
import { readBins } from "#server/services/utilisation/bins.ts";

const HOUR_MS = 3_600_000;
const HOURS = 24;

/** Average GPUs held by a person per time span, busy and idle. */
export type OwnUse = { from: string; to: string; bins: { from: string; to: string; used: number; idle: number }[] };

/** Utilization of the caller's GPUs in the last day. */
export async function ownUse(ctx: Context): Promise<OwnUse> {
  authorize(ctx.principal, "lease.list");
  if (ctx.principal.kind !== "user") throw new SluiceError("forbidden", "Only a person has GPUs of their own.");
  const to = ctx.now();
  const span = { from: new Date(to.getTime() - HOURS * HOUR_MS), to };
  const bins = await readBins(ctx, span, { userId: ctx.principal.userId });
  return {
    from: span.from.toISOString(),
    to: span.to.toISOString(),
    bins: bins.map(({ from, to, used, heldIdle }) => {
      const hours = Math.max(1e-9, (Date.parse(to) - Date.parse(from)) / HOUR_MS);
      return { from, to, used: used / hours, idle: heldIdle / hours };
    }),
  };
}
