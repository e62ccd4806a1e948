import { endOf } from "#components/lease/ends-in.tsx";
import type { PillState } from "#components/shell/gpu-pill.tsx";
import { atAGlance } from "#server/services/lease/at-a-glance.ts";
import { load, pageContext } from "../page-context.ts";

/** What the pill in the top bar says: a GPU held comes before a place in the queue. */
export async function pillState(): Promise<PillState> {
  const ctx = await pageContext();
  const { leases, waiting } = await load(() => atAGlance(ctx));
  const [first] = [...leases].sort((a, b) => endOf(a).localeCompare(endOf(b)));
  if (first) {
    const same = leases.filter((lease) => lease.gpuType === first.gpuType);
    return {
      ...{ kind: "held", gpuType: first.gpuType, expiresAt: first.expiresAt },
      milli: same.reduce((sum, lease) => sum + lease.milli, 0),
      releaseAt: first.releaseAt,
      more: leases.length - same.length,
    };
  }
  return waiting ? { kind: "queued", ...waiting } : { kind: "none" };
}
