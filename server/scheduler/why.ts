/** The whole answer to "why does it wait": every rule, the one that holds it, what fits now, and when. */
import type { LeaseExplanation } from "../contracts/lease.ts";
import { formatMilli, formatQuota } from "./amount.ts";
import { estimate } from "./estimate.ts";
import { explain } from "./reasons.ts";
import { roomOf } from "./room.ts";
import type { Seen } from "./seen-by.ts";
import { areEnoughInAll, promisesNow, usedBy } from "./share.ts";
import type { Obstacle, Verdict, Waiting, World } from "./types.ts";

type Rules = LeaseExplanation["rules"];
export type Why = Pick<LeaseExplanation, "position" | "of" | "reason" | "rules" | "estimate">;

/** Rules in the order in which they are tested. */
const ORDER = [
  "stopped",
  "calendar",
  "budget",
  "team-limit",
  "person-limit",
  "guaranteed",
  "free-device",
  "order",
] as const;

/**
 * Explains a request that waits in this world, of which these are the verdicts; one that would be granted right now has
 * no reason.
 */
export function explainRules(requestId: string, world: Seen, verdicts: readonly Verdict[]): Why {
  const verdict = verdicts.find((one) => one.requestId === requestId);
  const request = world.queue.find((one) => one.requestId === requestId);
  if (verdict === undefined || request === undefined || verdict.state === "granted") {
    return { position: 0, of: 0, reason: null, rules: [], estimate: null };
  }
  const guess = estimate(requestId, world, verdicts);
  const [position, of] = verdict.state === "queued" ? [verdict.position, verdict.of] : [0, 0];
  const reason = explain(request, verdict.obstacle, world);
  return {
    ...{ position, of, reason },
    rules: rulesFor(request, verdict.obstacle, reason.message, world),
    estimate:
      guess === undefined
        ? null
        : {
            ...{ likelySeconds: guess.likely, lowSeconds: guess.low, highSeconds: guess.high, basis: guess.basis },
            soonestSeconds: guess.soonest ?? null,
          },
  };
}

function rulesFor(request: Waiting, obstacle: Obstacle, message: string, world: World): Rules {
  const here = placeOf(obstacle);
  const at = ORDER.indexOf(here);
  return ORDER.flatMap((rule, index): Rules => {
    if (index === at) return [{ rule: obstacle.rule, state: "here" as const, message }];
    const fact = factOf(rule, request, world);
    return fact === undefined
      ? []
      : [{ rule, state: index < at ? ("ok" as const) : ("later" as const), message: fact }];
  });
}

function placeOf({ rule }: Obstacle): (typeof ORDER)[number] {
  return ORDER.find((one) => one === rule) ?? "free-device";
}

/** What stands there for a rule that does not hold it back. */
function factOf(rule: (typeof ORDER)[number], request: Waiting, world: World): string | undefined {
  const { quotas, guarantees } = promisesNow(world);
  const quota = quotas.get(request.teamId);
  if (quota === undefined) return undefined;
  switch (rule) {
    case "team-limit":
      return `${formatQuota(usedBy(request.teamId, world))} of ${formatQuota(quota.limitMilli)} in use`;
    case "person-limit":
      return quota.personMilli === undefined ? undefined : `at most ${formatQuota(quota.personMilli)} a person`;
    case "guaranteed":
      return guaranteedFact(quota.guaranteedMilli, guarantees.get(request.teamId) ?? 0, world);
    case "budget":
      return quota.budget === undefined
        ? undefined
        : `${formatQuota(quota.budget.usedMilliHours)} of ${formatQuota(quota.budget.milliHours)} GPU-hours used`;
    case "free-device": {
      const rooms = [...roomOf(world.devices, world.holdings).values()].filter(({ device }) => device.state === "open");
      const largest = rooms.reduce((most, room) => Math.max(most, room.freeMilli), 0);
      return `largest free piece: ${formatMilli(largest)}`;
    }
    default:
      return undefined;
  }
}

function guaranteedFact(milli: number, now: number, world: World): string {
  if (now >= milli) return `${formatQuota(milli)} guaranteed`;
  const why = areEnoughInAll(world) ? " until servers are back" : ": there are fewer devices than teams are guaranteed";
  return `${formatQuota(now)} of ${formatQuota(milli)} guaranteed${why}`;
}
