import { Card } from "#components/ui/page.tsx";
import type { EgressPolicy } from "#server/contracts/egress.ts";
import { ALWAYS_CLOSED, EGRESS_MODES, ON_A_CLUSTER } from "./egress-words.ts";

/** A team's outgoing network policy: the mode, its list, and destinations that no mode opens. */
export function EgressCard({ policy, onCluster }: { policy: EgressPolicy; onCluster: boolean }) {
  const { label, does } = EGRESS_MODES[policy.mode];
  const isEmptyList = policy.mode === "list" && policy.allow.length === 0;
  return (
    <Card className="px-4 py-3">
      <p className="text-lg font-medium">{label}</p>
      <p className="mt-0.5">
        {does}
        {isEmptyList && " The list is empty, so all destinations are closed."}
      </p>
      {policy.mode !== "none" && policy.allow.length > 0 && (
        <ul aria-label="Allowed destinations" className="mt-2 flex flex-wrap gap-1.5">
          {policy.allow.map((entry) => (
            <li key={entry} className="max-w-full rounded-sm bg-sunken px-1.5 text-sm leading-6 break-all">
              <code>{entry}</code>
            </li>
          ))}
        </ul>
      )}
      <p className="mt-2 max-w-prose text-sm text-ink-2">
        {ALWAYS_CLOSED}
        {onCluster && ` ${ON_A_CLUSTER}`}
      </p>
    </Card>
  );
}
