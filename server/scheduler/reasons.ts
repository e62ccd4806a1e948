/** Turns what stops a request into a reason a person can act on. */
import type { LeaseReason } from "../contracts/lease.ts";
import { fitsNow, largestEver } from "./fits-now.ts";
import type { Seen } from "./seen-by.ts";
import type { Obstacle, Waiting } from "./types.ts";
import {
  amountWords,
  calendarWords,
  deviceWords,
  needsWords,
  noServerWords,
  orderWords,
  pinnedWords,
  reclaimWords,
  stoppedWords,
} from "./words-device.ts";
import { budgetWords, guaranteedWords, limitEver, limitNow, personWords, type Words } from "./words-quota.ts";

/** The reason for a verdict that is not a grant. `request` need not be in the world's queue. */
export function explain(request: Waiting, obstacle: Obstacle, world: Seen): LeaseReason {
  const largest = largestEver(request, world);
  const fits = fitsNow(request, world);
  const bounds = { gpuType: world.gpuType, ...(fits > 0 ? { fitsNowMilli: fits } : {}), largestMilli: largest };
  return { ...wordsFor(request, obstacle, world, fits, largest), ...bounds };
}

/** Its sentence alone, without what would fit now: that takes a round for each who waits. */
export function sentence(request: Waiting, obstacle: Obstacle, world: Seen): string {
  return wordsFor(request, obstacle, world, 0, largestEver(request, world)).message;
}

function wordsFor(request: Waiting, obstacle: Obstacle, world: Seen, fits: number, largest: number): Words {
  switch (obstacle.rule) {
    case "gpu-type":
      return {
        rule: "gpu-type",
        message: `There is no GPU type ${world.gpuType} in the pool.`,
        hint: "%gpu free shows the types there are",
      };
    case "amount":
      return amountWords(request, obstacle.why, world, largest);
    case "team-limit":
      return obstacle.ever || obstacle.more
        ? limitEver(request, obstacle.more, world, { fits, largest })
        : limitNow(request, world, fits);
    case "person-limit":
      return personWords(request, obstacle.ever, world, fits);
    case "guaranteed":
      return guaranteedWords(request, obstacle, world);
    case "budget":
      return budgetWords(request, obstacle.resetsAt, world);
    case "stopped":
      return stoppedWords(request, obstacle, world);
    case "calendar":
      return calendarWords(request, obstacle.opensAt, world);
    case "needs":
      return needsWords(request.needs, world);
    case "pinned":
      return pinnedWords(request, obstacle.why, world);
    case "no-server":
      return noServerWords(request, world);
    case "reclaim":
      return reclaimWords(request, obstacle, world, fits);
    case "order":
      return orderWords(request, obstacle.behind, world, fits);
    case "free-device":
      return deviceWords(request, world, fits);
  }
}
