import { State } from "#components/ui/state.tsx";
import type { LeaseListItem } from "#server/contracts/gpu-server.ts";

/** Where a lease is in its life; ended ones say how. */
export function LeaseState({ lease }: { lease: Pick<LeaseListItem, "state" | "endReason" | "endNote"> }) {
  switch (lease.state) {
    case "granted":
      return <State tone="busy">granted</State>;
    case "active":
      return <State tone="ok">active</State>;
    case "unreachable":
      return <State tone="warn">GPU server silent</State>;
    case "ending":
      return <State tone="busy">ending</State>;
    case "ended":
      return (
        <span title={lease.endNote ?? undefined}>
          <State tone="idle">{lease.endReason ?? "ended"}</State>
        </span>
      );
  }
}
