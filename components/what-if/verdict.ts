import { formatDuration } from "#components/format.ts";
import type { WhatIfOutcome } from "#server/contracts/what-if.ts";

type Compared = Pick<WhatIfOutcome, "waitP95" | "cents" | "refused" | "gaveUp">;

/**
 * The result of a proposal in one sentence, with what differs from the pool of now: `p95 wait 9 min → 2 min, cost
 * €10.00 → €20.00.`
 */
export function verdict(now: Compared, proposed: Compared, money: (cents: number) => string): string {
  const wait = (seconds: number | null) => (seconds === null ? "none" : formatDuration(seconds * 1000));
  const count = (value: number) => value.toLocaleString("en");
  const cost = (cents: number | null) => (cents === null ? "no price" : money(cents));
  const changes = [
    change("p95 wait", wait(now.waitP95), wait(proposed.waitP95)),
    change("gave up waiting", count(now.gaveUp), count(proposed.gaveUp)),
    change("refused", count(now.refused), count(proposed.refused)),
    change("cost", cost(now.cents), cost(proposed.cents)),
  ].filter((text) => text !== undefined);
  return changes.length === 0
    ? "Waits, refusals and cost stay as they are now."
    : `Now → proposed: ${changes.join(", ")}.`;
}

const change = (name: string, now: string, proposed: string): string | undefined =>
  now === proposed ? undefined : `${name} ${now} → ${proposed}`;
