import { formatAmount } from "#components/format.ts";

/** What some leases hold together, each GPU type for itself: `1.0 h200 and 0.5 a100`. */
export function amountsOf(leases: readonly { milli: number; gpuType: string }[]): string {
  const byType = new Map<string, number>();
  for (const { gpuType, milli } of leases) byType.set(gpuType, (byType.get(gpuType) ?? 0) + milli);
  const each = [...byType].map(([gpuType, milli]) => `${formatAmount(milli)} ${gpuType}`);
  return new Intl.ListFormat("en").format(each);
}
