import { sql } from "drizzle-orm";
import { boolean, check, integer, jsonb, pgTable, primaryKey, text, unique, uniqueIndex } from "drizzle-orm/pg-core";
import { DEFAULT_EGRESS_POLICY, type EgressPolicy } from "#server/contracts/egress.ts";
import { bytes, createdAt, id, instant, version } from "./columns.ts";
import { users } from "./users.ts";

/** A team owns workspaces and holds quotas. */
export const teams = pgTable(
  "teams",
  {
    id: id(),
    /** Lower-case word used in URLs and messages. */
    name: text("name").notNull(),
    createdAt: createdAt(),
    /**
     * Since when it takes no people, promises, workspaces or datasets any more: a trigger refuses them. Accounts and audit
     * stay under its name, so no other team gets that.
     */
    archivedAt: instant("archived_at"),
    /** Destinations that the team's workspaces may connect to (server/contracts/egress.ts). */
    egressPolicy: jsonb("egress_policy").$type<EgressPolicy>().notNull().default(DEFAULT_EGRESS_POLICY),
    egressPolicyVersion: version("egress_policy_version"),
  },
  (t) => [uniqueIndex("teams_name").on(t.name)],
);

/** Who belongs to which team, and as what. */
export const memberships = pgTable(
  "memberships",
  {
    teamId: text("team_id")
      .notNull()
      .references(() => teams.id, { onDelete: "cascade" }),
    userId: text("user_id")
      .notNull()
      .references(() => users.id, { onDelete: "cascade" }),
    role: text("role", { enum: ["lead", "member"] }).notNull(),
    /** A group of the identity provider has put them in, and leaving it takes them out. */
    byGroup: boolean("by_group").notNull().default(false),
    version: version(),
    createdAt: createdAt(),
  },
  (t) => [primaryKey({ columns: [t.teamId, t.userId] })],
);

/** What a group of the identity provider gives to whoever is in it: a role in a team, or an admin's rights. */
export const identityGroups = pgTable(
  "identity_groups",
  {
    id: id(),
    /** As the provider writes it in the claim. */
    name: text("name").notNull(),
    /** Null with an admin's rights. */
    teamId: text("team_id").references(() => teams.id, { onDelete: "cascade" }),
    role: text("role", { enum: ["admin", "lead", "member"] }).notNull(),
    createdAt: createdAt(),
  },
  (t) => [
    unique("identity_groups_name_team").on(t.name, t.teamId).nullsNotDistinct(),
    check("identity_groups_admin_of_no_team", sql`(${t.role} = 'admin') = (${t.teamId} is null)`),
  ],
);

/** What a team may borrow of one GPU type. Amounts are thousandths of a GPU. */
export const quotas = pgTable(
  "quotas",
  {
    teamId: text("team_id")
      .notNull()
      .references(() => teams.id, { onDelete: "cascade" }),
    gpuType: text("gpu_type").notNull(),
    guaranteedMilli: integer("guaranteed_milli").notNull(),
    limitMilli: integer("limit_milli").notNull(),
    /** How spare GPUs are split between teams of one priority. */
    weight: integer("weight").notNull().default(1),
    /** Who gets spare GPUs first; larger is earlier. */
    priority: integer("priority").notNull().default(0),
    /** The most that one person of the team may hold at once. */
    personMilli: integer("person_milli"),
    /** The largest single request for which the guarantee is proved to fit the devices. */
    largestMilli: integer("largest_milli"),
    /** GPU-hours a month, thousandths; a ledger of its own. */
    budgetMilliHours: bytes("budget_milli_hours"),
    version: version(),
  },
  (t) => [primaryKey({ columns: [t.teamId, t.gpuType] })],
);
