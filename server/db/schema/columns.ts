/** Columns shared by many tables. Times are UTC, amounts are thousandths of a GPU, memory is bytes. */
import { bigint, customType, integer, text, timestamp } from "drizzle-orm/pg-core";

/** Primary key: a type prefix and a UUIDv7 in lower-case base32 (see server/ids.ts). */
export const id = () => text("id").primaryKey();

/** UTC instant. */
export const instant = (name: string) => timestamp(name, { withTimezone: true, mode: "date" });

/** When the row was made. */
export const createdAt = () => instant("created_at").notNull().defaultNow();

/** A count of bytes that fits a JavaScript number (up to 9 PB). */
export const bytes = (name: string) => bigint(name, { mode: "number" });

/**
 * For how much of a lease's GPU time multiprocessors held warps, for how much of it that is known, and what of it was
 * estimated: microseconds (server/contracts/control.ts). Nothing known is all of it unknown.
 */
export const smActivity = () => ({
  smActiveUs: bytes("sm_active_us").notNull().default(0),
  smKnownUs: bytes("sm_known_us").notNull().default(0),
  smEstimatedUs: bytes("sm_estimated_us").notNull().default(0),
});

/** Counts the edits of a row, or of one setting in it, so that whoever edits what has changed meanwhile is told. */
export const version = (name = "version") => integer(name).notNull().default(1);

/** Octets as they are. */
export const octets = customType<{ data: Buffer }>({ dataType: () => "bytea" });
