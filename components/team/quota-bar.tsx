import { formatAmount } from "#components/format.ts";
import { formatGuaranteed, type Guaranteed } from "#components/lease/guaranteed.ts";
import { Meter } from "#components/ui/meter.tsx";
import { RelativeTime } from "#components/ui/time.tsx";

export type QuotaFigures = Guaranteed & {
  gpuType: string;
  limitMilli: number;
  usedMilli: number;
  increases: readonly { limitMilli: number; endsAt: string }[];
};

/** The limit, plus the increases in effect now. */
export const limitNow = ({ limitMilli, increases }: Pick<QuotaFigures, "limitMilli" | "increases">): number =>
  increases.reduce((sum, increase) => sum + increase.limitMilli, limitMilli);

/** One GPU type of a team in one bar: guaranteed, limit, used, borrowed, with the figures beneath. */
export function QuotaBar({ quota, size = "lg" }: { quota: QuotaFigures; size?: "md" | "lg" }) {
  const { gpuType, guaranteedMilli, guaranteedNowMilli, increases, usedMilli } = quota;
  const limitMilli = limitNow(quota);
  const borrowed = Math.max(0, usedMilli - guaranteedNowMilli);
  // Whether anybody borrows it is another figure: what was lent stands under Usage.
  const left = Math.max(0, guaranteedNowMilli - usedMilli);
  const spoken = `${gpuType}: ${formatAmount(usedMilli)} of ${formatAmount(limitMilli)} in use, ${formatGuaranteed(quota)}, ${formatAmount(borrowed)} borrowed`;
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
          guaranteedNowMilli > 0 && guaranteedNowMilli < limitMilli
            ? [{ at: guaranteedNowMilli, title: formatGuaranteed(quota) }]
            : []
        }
      />
      {size === "lg" && (
        <dl className="figures mt-2 flex flex-wrap gap-x-6 gap-y-1 text-sm">
          <Part name="used" value={formatAmount(usedMilli)} swatch="bg-accent" />
          <Part name="borrowed" value={formatAmount(borrowed)} swatch="bg-accent stripes" />
          <Part name="guaranteed" value={formatAmount(guaranteedMilli)} swatch="w-0.5 bg-ink" />
          {guaranteedNowMilli !== guaranteedMilli && (
            <Part name="guaranteed now" value={formatAmount(guaranteedNowMilli)} />
          )}
          <Part name="limit" value={formatAmount(limitMilli)} swatch="border border-line-strong bg-sunken" />
          {increases.map(({ limitMilli: more, endsAt }) => (
            <div key={`${more} ${endsAt}`} className="flex items-center gap-1.5">
              <dt className="text-ink-2">temporary increase</dt>
              <dd className="font-medium">
                {formatAmount(more)}, ends <RelativeTime at={endsAt} />
              </dd>
            </div>
          ))}
          <Part name="unused guarantee, lent to others" value={formatAmount(left)} />
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
