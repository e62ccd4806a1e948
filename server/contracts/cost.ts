/** Costs: a month's hardware, split to whoever held it. Money is whole hundredths of the currency's unit (cents). */
import { z } from "zod";
import { editedVersion, gpuType, instant, pageSize, searchText, teamId, version } from "./common.ts";

export const month = z.string().regex(/^20\d{2}-(0[1-9]|1[0-2])$/, "A month is written 2026-11.");

export const gpuPrice = z.strictObject({
  gpuType: z.string(),
  /** hour: of one GPU for an hour; month: of all hardware of this type for a calendar month. */
  basis: z.enum(["hour", "month"]),
  /** In the currency's unit. */
  amount: z.number(),
  changedAt: instant,
  version,
});
export const gpuPriceList = z.strictObject({ currency: z.string(), prices: z.array(gpuPrice) });
export type GpuPriceList = z.infer<typeof gpuPriceList>;

export const setPriceInput = z.strictObject({
  type: gpuType,
  basis: z.enum(["hour", "month"]),
  amount: z
    .number()
    .min(0)
    .max(1_000_000_000)
    .refine((value) => Math.abs(value * 1e4 - Math.round(value * 1e4)) < 1e-6, "At most four decimals."),
  version: editedVersion,
});
export type SetPriceInput = z.input<typeof setPriceInput>;

export const removePriceInput = z.strictObject({ type: gpuType, version: editedVersion });
export type RemovePriceInput = z.input<typeof removePriceInput>;

export const costLine = z.strictObject({
  gpuType: z.string(),
  /** leased: somebody held it; free, draining, lost: nobody did. */
  what: z.enum(["leased", "free", "draining", "lost"]),
  teamId: z.string().nullable(),
  teamName: z.string().nullable(),
  userId: z.string().nullable(),
  userName: z.string().nullable(),
  workspaceId: z.string().nullable(),
  workspaceName: z.string().nullable(),
  /** GPU-hours. */
  hours: z.number(),
  /** null: its type has no price. */
  cents: z.int().nullable(),
});
export type CostLine = z.infer<typeof costLine>;

export const costReport = z.strictObject({
  month: z.string(),
  from: instant,
  /** The month's end, or now while it is not over. */
  to: instant,
  currency: z.string(),
  closed: z.strictObject({ at: instant, by: z.string() }).nullable(),
  /** What each type cost: the lines of a type sum to it exactly. */
  types: z.array(
    z.strictObject({
      gpuType: z.string(),
      basis: z.enum(["hour", "month"]),
      amount: z.number(),
      /** Of the price; months that were closed before prices had versions have none. */
      version: version.optional(),
      hours: z.number(),
      cents: z.int(),
    }),
  ),
  /** Types in the pool without a price. Their hours are in `lines` but not in `cents`. */
  unpriced: z.array(z.string()),
  lines: z.array(costLine),
  cents: z.int(),
});
export type CostReport = z.infer<typeof costReport>;

export const costsInput = z.strictObject({
  /** This month when left out. */
  month: month.optional(),
  /** A lead names the own team. */
  teamId: teamId.optional(),
  /** `csv` answers the lines as a file. */
  format: z.enum(["json", "csv"]).default("json"),
});
export type CostsInput = z.input<typeof costsInput>;

export const costRowsInput = z.strictObject({
  month: month.optional(),
  teamId: teamId.optional(),
  by: z.enum(["team", "person", "workspace"]).default("team"),
  /** Words, each in the name or in what it is within. */
  search: searchText.optional(),
  limit: pageSize(100),
  /** The last row of the page before. */
  after: z.string().max(100).optional(),
});
export type CostRowsInput = z.input<typeof costRowsInput>;

export const costRow = z.strictObject({
  id: z.string(),
  name: z.string(),
  /** The team of a person; the person and the team of a workspace. */
  within: z.string().nullable(),
  /** Free, draining or lost time. */
  nobody: z.boolean(),
  hours: z.number(),
  /** The part of `hours` for types without a price. */
  unpricedHours: z.number(),
  /** Cost of the priced hours; null: no hour has a price. */
  cents: z.int().nullable(),
});
export type CostRow = z.infer<typeof costRow>;

/** Most first; what is nobody's stands last. */
export const costRows = z.strictObject({
  month: z.string(),
  currency: z.string(),
  rows: z.array(costRow),
  /** All that match, on whichever page. */
  total: z.int(),
  /** What `after` is for the next page; null: this is the last. */
  next: z.string().nullable(),
});
export type CostRows = z.infer<typeof costRows>;

export const wasteInput = costRowsInput.extend({
  /** `csv` answers all rows as a file. */
  format: z.enum(["json", "csv"]).default("json"),
});
export type WasteInput = z.input<typeof wasteInput>;

/** GPU-hours that did nothing, and what they cost; null: nothing of them has a price. */
const wasted = { hours: z.number(), cents: z.int().nullable() };

export const wasteRow = z.strictObject({
  id: z.string(),
  name: z.string(),
  /** The team of a person; the person and the team of a workspace. */
  within: z.string().nullable(),
  /** GPU-hours that were held. */
  held: z.number(),
  /** Of them those in which the GPU did nothing. */
  ...wasted,
});
export type WasteRow = z.infer<typeof wasteRow>;

/** A month's GPU time that nobody had any use of. */
export const waste = z.strictObject({
  month: z.string(),
  currency: z.string(),
  /** What was held and did nothing; what nobody held, drained or had lost is told of the whole pool alone. */
  parts: z.array(z.strictObject({ what: z.enum(["idle", "free", "draining", "lost"]), ...wasted })),
  /** All the time that there was, of a team what it held. */
  hours: z.number(),
  /** Types without a price: in the hours, not in the money. */
  unpriced: z.array(z.string()),
  /** Who held what did nothing, most of it first. */
  rows: z.array(wasteRow),
  total: z.int(),
  /** What `after` is for the next page; null: this is the last. */
  next: z.string().nullable(),
});
export type Waste = z.infer<typeof waste>;

export const closeMonthInput = z.strictObject({ month });
export type CloseMonthInput = z.input<typeof closeMonthInput>;
