import { formatAmount } from "#components/format.ts";
import { Meter } from "#components/ui/meter.tsx";

export type QuotaFigures = { gpuType: string; guaranteedMilli: number; limitMilli: number; usedMilli: number };

/** One GPU type of a team in one bar: guaranteed, limit, used, borrowed, lent, with the figures beneath. */
export function QuotaBar({ quota, size = "lg" }: { quota: QuotaFigures; size?: "md" | "lg" }) {
  const { gpuType, guaranteedMilli, limitMilli, usedMilli } = quota;
  const borrowed = Math.max(0, usedMilli - guaranteedMilli);
  const lent = Math.max(0, guaranteedMilli - usedMilli);
  const spoken = `${gpuType}: ${formatAmount(usedMilli)} of ${formatAmount(limitMilli)} in use, ${formatAmount(guaranteedMilli)} guaranteed, ${formatAmount(borrowed)} borrowed`;
  return (
    <div>
      <Meter
        size={size}
        max={limitMilli}
        label={spoken}
        segments={[
          {
            key: "used",
            value: usedMilli - borrowed,
            look: "used",
            title: `inside the guaranteed amount: ${formatAmount(usedMilli - borrowed)}`,
          },
          { key: "borrowed", value: borrowed, look: "borrowed", title: `borrowed: ${formatAmount(borrowed)}` },
        ]}
        marks={
          guaranteedMilli > 0 && guaranteedMilli < limitMilli
            ? [{ at: guaranteedMilli, title: `guaranteed ${formatAmount(guaranteedMilli)}` }]
            : []
        }
      />
      {size === "lg" && (
        <dl className="figures mt-2 flex flex-wrap gap-x-6 gap-y-1 text-sm">
          <Part name="used" value={formatAmount(usedMilli)} swatch="bg-accent" />
          <Part name="borrowed" value={formatAmount(borrowed)} swatch="bg-accent stripes" />
          <Part name="guaranteed" value={formatAmount(guaranteedMilli)} swatch="w-0.5 bg-ink" />
          <Part name="limit" value={formatAmount(limitMilli)} swatch="border border-line-strong bg-sunken" />
          <Part name="lent" value={formatAmount(lent)} />
        </dl>
      )}
    </div>
  );
}

function Part({ name, value, swatch }: { name: string; value: string; swatch?: string }) {
  return (
    <div className="flex items-center gap-1.5">
      {swatch && (
        <span
          aria-hidden="true"
          className={`inline-block h-3 rounded-[2px] ${swatch.startsWith("w-") ? "" : "w-3"} ${swatch}`}
        />
      )}
      <dt className="text-ink-2">{name}</dt>
      <dd className="font-medium">{value}</dd>
    </div>
  );
}
