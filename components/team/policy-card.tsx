import { CUSTOM_SIZES } from "#components/size/custom-sizes.ts";
import { Card } from "#components/ui/page.tsx";
import type { TeamPolicyView } from "#server/contracts/sharing.ts";
import { sizeInWords } from "#server/contracts/size-words.ts";
import { CO_TENANCY, COMPUTE_CEILING, effectOf, POLICY_TIMES, timeThatCounts } from "./policy-fields.ts";

/** What counts for a team's leases and workspaces, each with what it does; what the team says itself is marked. */
export function PolicyCard({ policy }: { policy: TeamPolicyView }) {
  const everywhere = policy.installation;
  const rows = [
    ...POLICY_TIMES.map(({ name, label }) => {
      const { text, own } = timeThatCounts(policy, name);
      return { label, text, own, effect: effectOf(name, text) };
    }),
    {
      label: "Cards",
      text: CO_TENANCY[policy.coTenancy].label,
      own: policy.coTenancy !== "any",
      effect: CO_TENANCY[policy.coTenancy].does,
    },
    {
      label: "Compute",
      text: COMPUTE_CEILING[policy.computeCeiling].label,
      own: policy.computeCeiling !== "none",
      effect: COMPUTE_CEILING[policy.computeCeiling].does,
    },
    {
      label: "Custom sizes",
      text: CUSTOM_SIZES[policy.customSizes ?? everywhere.customSizes],
      own: policy.customSizes !== null || policy.maxCpuMilli !== null || policy.maxMemoryBytes !== null,
      effect: `May choose cores and memory of a workspace freely, up to ${sizeInWords({
        cpuMilli: policy.maxCpuMilli ?? everywhere.maxCpuMilli,
        memoryBytes: policy.maxMemoryBytes ?? everywhere.maxMemoryBytes,
      })}.`,
    },
  ];
  return (
    <Card>
      <dl className="grid gap-px overflow-hidden rounded-lg bg-line *:bg-surface sm:grid-cols-2 xl:grid-cols-3">
        {rows.map(({ label, text, own, effect }) => (
          <div key={label} className="px-4 py-3">
            <dt className="text-sm text-ink-2">{label}</dt>
            <dd className="figures mt-0.5 flex flex-wrap items-baseline gap-x-2">
              <span className="text-lg font-medium">{text}</span>
              <span className="text-xs text-ink-2">{own ? "set for this team" : "as everywhere"}</span>
            </dd>
            <dd className="mt-0.5 text-sm text-ink-2">{effect}</dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}
