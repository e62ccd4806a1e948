import { formatAmount } from "#components/format.ts";

export type Guaranteed = {
  guaranteedMilli: number;
  /** What of it holds now. */
  guaranteedNowMilli: number;
};

/** `1.0 guaranteed`; `0.5 of 1.0 guaranteed now` while servers are away, `1.5 guaranteed now` with a reservation. */
export function formatGuaranteed({ guaranteedMilli, guaranteedNowMilli }: Guaranteed): string {
  if (guaranteedNowMilli === guaranteedMilli) return `${formatAmount(guaranteedMilli)} guaranteed`;
  const of = guaranteedNowMilli < guaranteedMilli ? ` of ${formatAmount(guaranteedMilli)}` : "";
  return `${formatAmount(guaranteedNowMilli)}${of} guaranteed now`;
}
