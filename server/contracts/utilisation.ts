/** What became of the pool's time. Amounts of time are GPU-hours: one whole GPU for an hour. */
import { z } from "zod";
import { gpuType, instant, pageSize, searchText, teamId, userId, workspaceId } from "./common.ts";

export const utilisationInput = z.strictObject({
  /** Seven days ago when left out. */
  from: instant.optional(),
  /** Now when left out; later counts as now. */
  to: instant.optional(),
  gpuType: gpuType.optional(),
  /** A lead names the own team; what is idle or away is told for the whole pool alone. */
  teamId: teamId.optional(),
  /** One person's, one workspace's part alone. */
  userId: userId.optional(),
  workspaceId: workspaceId.optional(),
  /** What the rows of the table are. */
  by: z.enum(["team", "person", "type", "workspace"]).default("team"),
  /** Which rows come first: those that held most, or those of whom most lay idle. */
  order: z.enum(["held", "idle"]).default("held"),
  /** Words, each in the name or the team of a row. */
  search: searchText.optional(),
  limit: pageSize(100),
  /** The last row of the page before. */
  after: z.string().max(100).optional(),
  /** `csv` answers all rows as a file, `csv-time` the stretches of time. */
  format: z.enum(["json", "csv", "csv-time"]).default("json"),
});
export type UtilisationInput = z.input<typeof utilisationInput>;

const hours = z.number().min(0);

/** What became of the time: the parts sum to what there was. */
export const timeParts = z.strictObject({
  /** Leased, and the GPU worked. */
  used: hours,
  /** Leased, and it did not. */
  heldIdle: hours,
  /** Open for leases, and nobody held it. */
  free: hours,
  draining: hours,
  lost: hours,
});
export type TimeParts = z.infer<typeof timeParts>;

/**
 * For how much of what was used the GPU's multiprocessors had work (SM active), averaged over all of them: a kernel that
 * keeps a quarter of them busy uses a GPU and is a quarter effective. Where a device does not tell, it is not known.
 */
const effectiveParts = {
  /** Part of `used`; null where it is known of none of it. */
  effective: hours.nullable(),
  /** Of `used`, that for which it is known. */
  effectiveKnown: hours,
  /** Of `effective`, what was estimated from the time in which any kernel ran, on cards that do not count it. */
  effectiveEstimated: hours,
};

export const utilisationRow = z.strictObject({
  id: z.string(),
  name: z.string(),
  /** The team of a person or a workspace. */
  within: z.string().nullable(),
  used: hours,
  heldIdle: hours,
  ...effectiveParts,
  /** Of both: above the team's guarantee when it was granted. */
  borrowed: hours,
  /** What others borrowed of today's guarantee; for teams alone. */
  lent: hours.nullable(),
  /** GPUs that were granted, and how long half of them and 95 of 100 had waited, seconds. */
  grants: z.int(),
  waitMedian: z.number().nullable(),
  waitP95: z.number().nullable(),
  /**
   * Compute while others wanted the device too: what was promised, and how much of that was delivered, second by second
   * and lease by lease: what one got too much makes up for nothing.
   */
  promised: hours,
  delivered: hours,
});
export type UtilisationRow = z.infer<typeof utilisationRow>;

export const utilisation = z.strictObject({
  from: instant,
  to: instant,
  gpuTypes: z.array(z.string()),
  /** The names of the person and the workspace that were asked for, when they are of the team. */
  person: z.string().nullable(),
  workspace: z.string().nullable(),
  total: timeParts.extend(effectiveParts),
  /** Over all rows. */
  grants: z.int(),
  waitMedian: z.number().nullable(),
  waitP95: z.number().nullable(),
  /**
   * Of what was held: borrowed. Of what was free: stranded, while somebody waited, in pieces that none of those who
   * waited could have been given (the pool's `strandedMilli`, looked at once a minute; after two days by the hour).
   */
  bins: z.array(timeParts.extend({ from: instant, to: instant, ...effectiveParts, borrowed: hours, stranded: hours })),
  /** A page of them, in the order that was asked for. */
  rows: z.array(utilisationRow),
  /** All that match, on whichever page. */
  rowCount: z.int(),
  /** What `after` is for the next page; null: this is the last. */
  next: z.string().nullable(),
  /** Over all bins; of the whole pool or a type alone. */
  stranded: hours,
  /** Over all rows. */
  borrowed: hours,
  promised: hours,
  delivered: hours,
  /**
   * Jain's index of what teams got of what they were promised while others wanted the device too: 1 where each got the
   * same part, 1/n where one of n got all; null where fewer than two teams shared a busy device.
   */
  fairness: z.number().min(0).max(1).nullable(),
});
export type Utilisation = z.infer<typeof utilisation>;
