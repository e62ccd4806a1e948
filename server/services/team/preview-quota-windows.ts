import { authorize, type Context } from "#server/context.ts";
import { type PackingProof, type SetQuotaWindowsInput, setQuotaWindowsInput } from "#server/contracts/sharing.ts";
import { parse } from "#server/parse.ts";
import { proofOf } from "#server/services/calendar/proof.ts";
import { rolledBack } from "#server/services/rolled-back.ts";
import { refuseUnpackable } from "./refuse-unpackable.ts";
import { setQuotaWindows } from "./set-quota-windows.ts";

/** Whether the guarantees would fit the devices with this calendar: it is saved, proved, and undone. */
export async function previewQuotaWindows(ctx: Context, raw: SetQuotaWindowsInput): Promise<PackingProof> {
  authorize(ctx.principal, "team.set-quota");
  const { gpuType } = parse(setQuotaWindowsInput, raw);
  return await rolledBack(ctx, (tx) =>
    proofOf(async () => {
      await setQuotaWindows(tx, raw);
      return await refuseUnpackable(tx, gpuType);
    }),
  );
}
