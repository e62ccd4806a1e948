import { formatAmount, formatExact } from "#components/format.ts";
import { useTimeZone } from "#components/time-zone/time-zone-context.tsx";
import type { QuotaEffects } from "#server/contracts/team.ts";

/** What saving the quota as it stands in the form would do, as sentences; nothing before something was changed. */
export function EffectsOfQuota({ effects, gpuType = "" }: { effects: QuotaEffects | undefined; gpuType?: string }) {
  const zone = useTimeZone();
  return (
    <section
      aria-live="polite"
      aria-label="What saving would do"
      className={effects ? "figures rounded-md bg-sunken px-3 py-2 text-sm" : "sr-only"}
    >
      {effects && (
        <>
          <h3 className="font-medium">{effects.refusal === null ? "Saving this would" : "This cannot be saved"}</h3>
          {effects.refusal !== null && <p className="mt-0.5 text-bad">{effects.refusal}</p>}
          {effects.refusal === null && (
            <ul className="mt-0.5 list-disc pl-4 text-ink-2">
              {effectSentences(effects, gpuType, zone).map((sentence) => (
                <li key={sentence}>{sentence}</li>
              ))}
            </ul>
          )}
        </>
      )}
    </section>
  );
}

/** One sentence for each thing that would change; that nothing would is one too. */
export function effectSentences(effects: QuotaEffects, gpuType: string, zone: string): string[] {
  const { borrowedMilli, overLimitMilli, overCeiling, granted, takenBack, budget } = effects;
  const amount = (milli: number) => `${formatAmount(milli)} ${gpuType}`.trim();
  const sentences = [
    effects.capacityMilli === 0
      ? `grant nothing until a server with a GPU of type ${gpuType} joins: the pool has none`
      : effects.unallocatedMilli < 0
        ? `guarantee ${amount(-effects.unallocatedMilli)} more than the pool has (${formatAmount(effects.capacityMilli)})`
        : `leave ${amount(effects.unallocatedMilli)} of ${formatAmount(effects.capacityMilli)} unallocated`,
  ];
  for (const { who, teamName, milli } of granted)
    sentences.push(`grant ${amount(milli)} to ${who} (${teamName}) at once`);
  for (const { who, teamName, milli } of takenBack) {
    sentences.push(`take ${amount(milli)} back from ${who} (${teamName}), with notice`);
  }
  if (borrowedMilli.after > borrowedMilli.before) {
    sentences.push(`make ${amount(borrowedMilli.after)} of what the team holds borrowed: it can be taken back`);
  } else if (borrowedMilli.after < borrowedMilli.before) {
    sentences.push(`leave ${amount(borrowedMilli.after)} borrowed instead of ${formatAmount(borrowedMilli.before)}`);
  }
  if (overLimitMilli > 0) {
    sentences.push(`grant nothing new until ${amount(overLimitMilli)} above the limit has ended; it runs on`);
  }
  for (const { who, milli } of overCeiling)
    sentences.push(`grant ${who} nothing new: holds ${amount(milli)}, which runs on`);
  if (budget !== null) sentences.push(budgetSentence(budget, zone));
  return sentences;
}

function budgetSentence(budget: NonNullable<QuotaEffects["budget"]>, zone: string): string {
  const { usedMilliHours, milliHours, spentAt } = budget;
  const used = `${formatAmount(usedMilliHours)} of ${formatAmount(milliHours)} GPU-h`;
  if (usedMilliHours >= milliHours) return `stop new GPUs until the month ends: ${used} are used`;
  if (spentAt === null) return `leave ${formatAmount(milliHours - usedMilliHours)} GPU-h of this month's budget`;
  return `let the budget end at ${formatExact(spentAt, zone)} if the team goes on as now (${used} used)`;
}
