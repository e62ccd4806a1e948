/** What-if: the logged demand on another pool. Waiting times are seconds, amounts of time GPU-hours, money cents. */
import { z } from "zod";
import { gpuType, idOf, instant, milli, teamId } from "./common.ts";

export const whatIfId = idOf("wif");

const amounts = { guaranteedMilli: milli, limitMilli: milli };

export const whatIfInput = z.strictObject({
  /** Requests made in this time are played again. */
  from: instant,
  /** Later than now counts as now. */
  to: instant,
  /** The pool that is proposed. Types that are not named stay out of it. */
  types: z
    .array(
      z.strictObject({
        gpuType,
        /** As many as now when left out. */
        gpus: z.int().min(0).max(10_000).optional(),
        /** Teams that are not named keep what they have. */
        quotas: z
          .array(z.strictObject({ teamId, ...amounts }))
          .max(500)
          .default([]),
      }),
    )
    .min(1, "Name a GPU type at least.")
    .max(20),
});
export type WhatIfInput = z.input<typeof whatIfInput>;
export type WhatIfQuestion = z.output<typeof whatIfInput>;

const waits = {
  /** Half of those who asked waited no longer; null: nobody waited for anything. */
  waitP50: z.number().nullable(),
  waitP95: z.number().nullable(),
  waitP99: z.number().nullable(),
};
const counts = { granted: z.int(), gaveUp: z.int(), refused: z.int() };

export const whatIfOutcome = z.strictObject({
  gpus: z.int(),
  ...waits,
  ...counts,
  /** Leases that were taken back. */
  reclaimed: z.int(),
  heldHours: z.number(),
  /** Held of what the pool had, 0 to 1. */
  utilisation: z.number(),
  /** Jain's index of how promptly teams were served: 1 is equal. */
  fairness: z.number(),
  /** By the prices of now; null: the type has none. */
  cents: z.int().nullable(),
  /** Of an hour that was held. */
  centsPerHeldHour: z.number().nullable(),
});
export type WhatIfOutcome = z.infer<typeof whatIfOutcome>;

export const whatIfTeamOutcome = z.strictObject({ ...amounts, ...waits, ...counts, heldHours: z.number() });

const held = z.strictObject({ held: z.number(), waiting: z.number() });

export const whatIfType = z.strictObject({
  gpuType: z.string(),
  /** What happened, the pool of now, and the proposed one. */
  logged: whatIfOutcome,
  now: whatIfOutcome,
  proposed: whatIfOutcome,
  teams: z.array(
    z.strictObject({ teamId: z.string(), name: z.string(), now: whatIfTeamOutcome, proposed: whatIfTeamOutcome }),
  ),
  /** GPUs on average in equal stretches of the time. */
  bins: z.array(z.strictObject({ from: instant, to: instant, now: held, proposed: held })),
  /** What was assumed of how many requests. */
  assumed: z.strictObject({
    asked: z.int(),
    /** Ran or waited when the time began. */
    carried: z.int(),
    /** Asked again within a quarter of an hour after giving up or being refused. */
    retries: z.int(),
    /** Never ran to their end: the team's median length was taken. */
    lengthGuessed: z.int(),
  }),
});
export type WhatIfType = z.infer<typeof whatIfType>;

export const whatIfResult = z.strictObject({ currency: z.string(), types: z.array(whatIfType) });
export type WhatIfResult = z.infer<typeof whatIfResult>;

export const whatIfView = z.strictObject({
  id: z.string(),
  state: z.enum(["running", "done", "failed"]),
  /** 0 to 1. */
  progress: z.number(),
  /** Why it failed, and what to do. */
  message: z.string().nullable(),
  question: whatIfInput,
  askedAt: instant,
  result: whatIfResult.nullable(),
});
export type WhatIfView = z.infer<typeof whatIfView>;

export const whatIfGetInput = z.strictObject({
  id: whatIfId,
  /** `csv` answers the teams as a file, `csv-time` the stretches of time. */
  format: z.enum(["json", "csv", "csv-time"]).default("json"),
});
export type WhatIfGetInput = z.input<typeof whatIfGetInput>;

/** The pool of now, to begin a proposal from, and what was asked lately. */
export const whatIfList = z.strictObject({
  present: z.array(
    z.strictObject({
      gpuType: z.string(),
      gpus: z.int(),
      quotas: z.array(z.strictObject({ teamId: z.string(), name: z.string(), ...amounts })),
    }),
  ),
  recent: z.array(whatIfView.omit({ result: true })),
});
export type WhatIfList = z.infer<typeof whatIfList>;
