import { endOf } from "#components/lease/ends-in.tsx";
import type { PillState } from "#components/shell/gpu-pill.tsx";
import { pageContext } from "../page-context.ts";
import { readBoard } from "./gpus/my-gpus.ts";

/** What the pill in the top bar says: a GPU held comes before a place in the queue. */
export async function pillState(): Promise<PillState> {
  const { userId } = (await pageContext()).principal;
  const { leases, requests } = await readBoard();
  const [first, ...others] = [...leases].sort((a, b) => endOf(a).localeCompare(endOf(b)));
  if (first) {
    const same = leases.filter((lease) => lease.gpuType === first.gpuType);
    return {
      kind: "held",
      milli: same.reduce((sum, lease) => sum + lease.milli, 0),
      gpuType: first.gpuType,
      expiresAt: first.expiresAt,
      releaseAt: first.releaseAt,
      more: others.length - (same.length - 1),
    };
  }
  const waiting = requests.find((request) => request.userId === userId);
  if (waiting) return { kind: "queued", milli: waiting.milli, gpuType: waiting.gpuType, position: waiting.position };
  return { kind: "none" };
}
