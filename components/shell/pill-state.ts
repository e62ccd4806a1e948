import { type Ending, endOf } from "#components/lease/ends-in.tsx";
import type { Glance } from "#server/contracts/session.ts";

/** What the pill in the top bar says. */
export type PillState =
  | { kind: "none" }
  | ({ kind: "held"; milli: number; gpuType: string; more: number } & Ending)
  | { kind: "queued"; milli: number; gpuType: string; position: number | null };

/** A GPU held comes before a place in the queue; of several, what ends first. */
export function pillState({ leases, waiting }: Pick<Glance, "leases" | "waiting">): PillState {
  const [first] = [...leases].sort((a, b) => endOf(a).localeCompare(endOf(b)));
  if (first) {
    const same = leases.filter((lease) => lease.gpuType === first.gpuType);
    return {
      ...{ kind: "held", gpuType: first.gpuType },
      milli: same.reduce((sum, lease) => sum + lease.milli, 0),
      ...{ expiresAt: first.expiresAt, idleEndsAt: first.idleEndsAt, releaseAt: first.releaseAt },
      more: leases.length - same.length,
    };
  }
  return waiting ? { kind: "queued", ...waiting } : { kind: "none" };
}
