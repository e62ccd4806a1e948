import { formatAmount } from "#components/format.ts";
import type { KindWindow, QuotaWindow } from "#server/contracts/sharing.ts";
import type { Look } from "./week.ts";

type Amounts = { guaranteedMilli: number; limitMilli: number };

/** `0.5 guaranteed, limit 1.0`. */
export function quotaWords({ guaranteedMilli, limitMilli }: Amounts): string {
  return `${formatAmount(guaranteedMilli)} guaranteed, limit ${formatAmount(limitMilli)}`;
}

/** Whether a window gives more or less than the plain quota. */
export function quotaLook(plain: Amounts): (window: QuotaWindow) => Look {
  return (window) => {
    const more = window.guaranteedMilli - plain.guaranteedMilli || window.limitMilli - plain.limitMilli;
    return more > 0 ? "more" : more < 0 ? "less" : "same";
  };
}

export const ANY_WORK = "interactive and batch";

export function kindWords({ kind }: KindWindow): string {
  return kind === "interactive" ? "interactive work only" : "batch work only";
}

export function kindLook({ kind }: KindWindow): Look {
  return kind === "interactive" ? "same" : "less";
}
