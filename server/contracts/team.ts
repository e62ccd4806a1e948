/** Teams, their people and their quotas. */
import { z } from "zod";
import { editedVersion, email, gpuType, instant, milli, teamId, userId, version } from "./common.ts";
import { typedWord } from "./typed-name.ts";

export const teamName = typedWord({
  max: 40,
  also: "-",
  sentence: "A team's name is a lower-case word: letters a to z, digits and dashes.",
});
export const teamRole = z.enum(["lead", "member"]);

/** What a team may borrow of one GPU type, and what it has borrowed. */
export const quotaView = z.strictObject({
  gpuType: z.string(),
  guaranteedMilli: milli,
  /** What is guaranteed now: less while servers are away, more with a calendar or a reservation. */
  guaranteedNowMilli: milli,
  limitMilli: milli,
  /** Approved increases in effect now, on top of guarantee and limit, sorted by end. */
  increases: z.array(z.strictObject({ guaranteedMilli: milli, limitMilli: milli, endsAt: instant })),
  weight: z.int(),
  priority: z.int(),
  /** The most that one person may hold at once; null: no ceiling. */
  personMilli: milli.nullable(),
  /** The largest single request for which the guarantee is proved to fit the devices; null: one GPU. */
  largestMilli: milli.nullable(),
  /** GPU-hours a month, thousandths; null: no budget. */
  budgetMilliHours: z.int().nullable(),
  version,
  /** Sum of the team's leases that have not ended. */
  usedMilli: z.int(),
});
export type QuotaView = z.infer<typeof quotaView>;

export const teamSummary = z.strictObject({
  id: teamId,
  name: z.string(),
  createdAt: instant,
  /** Since when it is put away; null: it is in use. */
  archivedAt: instant.nullable(),
  memberCount: z.int(),
  workspaceCount: z.int(),
  quotas: z.array(quotaView),
});
export type TeamSummary = z.infer<typeof teamSummary>;
export const teamList = z.strictObject({
  teams: z.array(teamSummary),
  /** For admins, by GPU type: what the pool has, what of it is guaranteed to teams, and what to nobody. */
  pool: z.array(
    z.strictObject({
      ...{ gpuType: z.string(), capacityMilli: milli, guaranteedMilli: milli },
      /** Guaranteed to nobody; below zero where more is guaranteed than there is. */
      unallocatedMilli: z.int(),
    }),
  ),
  /** For admins: teams that were put away, by name. */
  archived: z.array(z.strictObject({ id: teamId, name: z.string(), archivedAt: instant })),
});
export type TeamList = z.infer<typeof teamList>;

export const teamInput = z.strictObject({ id: teamId });
export type TeamInput = z.input<typeof teamInput>;
export const teamView = teamSummary.extend({
  members: z.array(
    z.strictObject({
      ...{ userId, name: z.string(), email: z.string(), role: teamRole, isSample: z.boolean() },
      /** Put in by a group of the identity provider. */
      byGroup: z.boolean(),
      version,
    }),
  ),
});
export type TeamView = z.infer<typeof teamView>;

export const createTeamInput = z.strictObject({ name: teamName });
export type CreateTeamInput = z.input<typeof createTeamInput>;

export const setQuotaInput = z.strictObject({
  teamId,
  gpuType,
  guaranteedMilli: milli,
  limitMilli: milli,
  weight: z.int().min(1).max(1000).default(1),
  priority: z.int().min(-100).max(100).default(0),
  personMilli: milli.min(1).nullable().default(null),
  largestMilli: milli.min(1).nullable().default(null),
  budgetMilliHours: z.int().min(0).nullable().default(null),
  version: editedVersion,
});
export type SetQuotaInput = z.input<typeof setQuotaInput>;

export const removeQuotaInput = z.strictObject({ teamId, gpuType, version: editedVersion });
export type RemoveQuotaInput = z.input<typeof removeQuotaInput>;

/** Somebody's lease or request, as an admin sees it in what an edit would do. */
const affected = z.strictObject({ who: z.string(), teamName: z.string(), milli: z.int() });

/** What saving a quota would do. Nothing of it has happened. */
export const quotaEffects = z.strictObject({
  /** Why it would be refused; null: it can be saved. The rest then says how things stand. */
  refusal: z.string().nullable(),
  /** What all devices of the type are together, and how much of it no team is guaranteed afterwards. */
  capacityMilli: z.int(),
  unallocatedMilli: z.int(),
  /** What the team holds, and how much of it is above its guarantee: before and after. */
  usedMilli: z.int(),
  borrowedMilli: z.strictObject({ before: z.int(), after: z.int() }),
  /** Held above the new limit: it runs on, and nothing new is granted until it has ended. */
  overLimitMilli: z.int(),
  /** People who hold more than the new ceiling for one person; what they hold runs on. */
  overCeiling: z.array(z.strictObject({ who: z.string(), milli: z.int() })),
  /** Requests that would be granted at once. */
  granted: z.array(affected),
  /** Leases whose holders would be told that they will be taken back. */
  takenBack: z.array(affected),
  /** Of the month's GPU-hours, thousandths; null without a budget. `spentAt`: when nothing is left if it goes on so. */
  budget: z.strictObject({ usedMilliHours: z.int(), milliHours: z.int(), spentAt: instant.nullable() }).nullable(),
});
export type QuotaEffects = z.infer<typeof quotaEffects>;

export const teamBudgetInput = teamInput.extend({
  /** `csv` answers the days as a file. */
  format: z.enum(["json", "csv"]).default("json"),
});
export type TeamBudgetInput = z.input<typeof teamBudgetInput>;

/** The GPU-hours of a month, thousandths, against the budget. */
export const teamBudget = z.strictObject({
  /** `2026-11`, UTC. */
  month: z.string(),
  endsAt: instant,
  budgets: z.array(
    z.strictObject({
      gpuType: z.string(),
      milliHours: z.int(),
      usedMilliHours: z.int(),
      /** When nothing is left if the team goes on with what it holds; null: not in this month. */
      spentAt: instant.nullable(),
      /** Each day of the month so far, `2026-11-01` first. */
      days: z.array(z.strictObject({ day: z.iso.date(), milliHours: z.int() })),
    }),
  ),
});
export type TeamBudget = z.infer<typeof teamBudget>;

export const addMemberInput = z.strictObject({
  ...{ teamId, email, role: teamRole.default("member") },
  version: editedVersion,
});
export type AddMemberInput = z.input<typeof addMemberInput>;

export const removeMemberInput = z.strictObject({ teamId, userId });
export type RemoveMemberInput = z.input<typeof removeMemberInput>;
