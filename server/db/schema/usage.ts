/**
 * Accounts of GPU time by the hour, so that nobody has to read a year of leases. Hours and days are UTC. Amounts of time
 * are thousandths of a GPU times microseconds, whole numbers, so that sums of sums stay exact.
 */
import { pgTable, primaryKey, smallint, text } from "drizzle-orm/pg-core";
import { bytes, instant, octets, smActivity } from "./columns.ts";
import { leases } from "./leases.ts";

/** What gpud measured of a lease in an hour: the sums of its samples, written with them, and kept when they go. */
export const leaseWork = pgTable(
  "lease_work",
  {
    leaseId: text("lease_id")
      .notNull()
      .references(() => leases.id, { onDelete: "cascade" }),
    hour: instant("hour").notNull(),
    gpuTimeUs: bytes("gpu_time_us").notNull(),
    ...smActivity(),
    /**
     * Microseconds: what was promised while others wanted the device too, and how much of that was delivered, each
     * sample by itself. With the lease's own sums, Σ|delivered - promised| is delivered + promised - 2 x this.
     */
    deliveredUs: bytes("delivered_us").notNull(),
    promisedUs: bytes("promised_us").notNull(),
  },
  (t) => [primaryKey({ columns: [t.leaseId, t.hour] })],
);

/** How much was held. */
const amounts = () => ({
  held: bytes("held").notNull(),
  /** Of it while the GPU worked. */
  used: bytes("used").notNull(),
  /** Of it what the GPU's multiprocessors worked, averaged over all of them, where that is known. */
  effective: bytes("effective").notNull().default(0),
  /** Of what was used: that for which it is known. */
  known: bytes("known").notNull().default(0),
  /** Of what was effective: estimated. */
  estimated: bytes("estimated").notNull().default(0),
  /** Of it above the team's guarantee when it was granted. */
  borrowed: bytes("borrowed").notNull(),
  /** Microseconds. */
  promised: bytes("promised").notNull(),
  delivered: bytes("delivered").notNull(),
});

/** What a team held, on devices in which state. */
const heldByTeam = () => ({
  at: instant("at").notNull(),
  gpuType: text("gpu_type").notNull(),
  teamId: text("team_id").notNull(),
  state: text("state", { enum: ["open", "draining", "lost"] }).notNull(),
  ...amounts(),
});

/** Who of a team, in which workspace. */
const person = () => ({ userId: text("user_id").notNull(), workspaceId: text("workspace_id").notNull() });

const held = () => ({ ...heldByTeam(), ...person() });

export const usageHours = pgTable("usage_hours", held(), (t) => [
  primaryKey({ columns: [t.at, t.gpuType, t.workspaceId, t.userId, t.teamId, t.state] }),
]);

/** The sums of `usage_hours`, for whoever asks about teams: a tenth of the rows and less. */
export const usageTeamHours = pgTable("usage_team_hours", heldByTeam(), (t) => [
  primaryKey({ columns: [t.at, t.gpuType, t.teamId, t.state] }),
]);

export const usageDays = pgTable("usage_days", held(), (t) => [
  primaryKey({ columns: [t.at, t.gpuType, t.workspaceId, t.userId, t.teamId, t.state] }),
]);

/** The sums of `usage_days`, as those of `usage_hours`. */
export const usageTeamDays = pgTable("usage_team_days", heldByTeam(), (t) => [
  primaryKey({ columns: [t.at, t.gpuType, t.teamId, t.state] }),
]);

/**
 * The sums of seven days of `usage_days` (the first a Thursday, as the epoch was) over all types and states, for whoever
 * asks about persons or workspaces alone: a tenth of the rows.
 */
export const usageWeeks = pgTable(
  "usage_weeks",
  { at: instant("at").notNull(), teamId: text("team_id").notNull(), ...person(), ...amounts() },
  (t) => [primaryKey({ columns: [t.at, t.workspaceId, t.userId, t.teamId] })],
);

/** How long devices were in each state, microseconds. */
export const poolHours = pgTable(
  "pool_hours",
  {
    at: instant("at").notNull(),
    gpuType: text("gpu_type").notNull(),
    state: text("state", { enum: ["open", "draining", "lost"] }).notNull(),
    wall: bytes("wall").notNull(),
  },
  (t) => [primaryKey({ columns: [t.at, t.gpuType, t.state] })],
);

/**
 * How long the grants of a day had waited: each as four bytes, whole milliseconds, most significant first. A year of
 * them is read in a moment this way, and counted without rounding.
 */
export const waitDays = pgTable(
  "wait_days",
  {
    at: instant("at").notNull(),
    gpuType: text("gpu_type").notNull(),
    teamId: text("team_id").notNull(),
    waits: octets("waits").notNull(),
  },
  (t) => [primaryKey({ columns: [t.at, t.gpuType, t.teamId] })],
);

/** One row: up to which hour the tables above are complete. Triggers turn it back when the ledger or a grant changes before it. */
export const usageRollup = pgTable("usage_rollup", {
  id: smallint("id").primaryKey().default(1),
  rolledTo: instant("rolled_to").notNull(),
});

/**
 * What was stranded (`scheduler/stranded.ts`) from `at` to `until`, in one hour: a row for each look, about a minute, and
 * after two days one for each hour. The pool's past cannot be asked for it, since it depends on who waited.
 */
export const strandedHours = pgTable(
  "stranded_hours",
  {
    at: instant("at").notNull(),
    gpuType: text("gpu_type").notNull(),
    stranded: bytes("stranded").notNull(),
    until: instant("until").notNull(),
  },
  (t) => [primaryKey({ columns: [t.at, t.gpuType] })],
);
