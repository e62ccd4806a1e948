/** What GPU time costs, and months that are closed. */
import { jsonb, pgTable, text } from "drizzle-orm/pg-core";
import { bytes, instant, version } from "./columns.ts";
import { users } from "./users.ts";

/** What a GPU type costs from now on, and in months that are not closed. */
export const gpuPrices = pgTable("gpu_prices", {
  gpuType: text("gpu_type").primaryKey(),
  /** hour: of one GPU for an hour; month: of all hardware of this type for a calendar month. */
  basis: text("basis", { enum: ["hour", "month"] }).notNull(),
  /** Millionths of the currency's unit. */
  micro: bytes("micro").notNull(),
  changedAt: instant("changed_at").notNull(),
  version: version(),
  changedBy: text("changed_by").references(() => users.id, { onDelete: "set null" }),
});

/** A closed month's report as it was. A trigger refuses to change or delete a row. */
export const costMonths = pgTable("cost_months", {
  /** `2026-11` */
  month: text("month").primaryKey(),
  closedAt: instant("closed_at").notNull(),
  /** Who closed it, by name: a person may be deleted, the month may not. */
  closedBy: text("closed_by").notNull(),
  report: jsonb("report").notNull(),
});
