/** Teams, their people and their quotas. */
import { z } from "zod";
import { email, gpuType, instant, milli, teamId, userId } from "./common.ts";

export const teamName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,39}$/, "A team's name is a lower-case word: letters, digits and dashes.");
export const teamRole = z.enum(["lead", "member"]);

/** What a team may borrow of one GPU type, and what it has borrowed. */
export const quotaView = z.strictObject({
  gpuType: z.string(),
  guaranteedMilli: milli,
  limitMilli: milli,
  weight: z.int(),
  priority: z.int(),
  /** The most that one person may hold at once; null: no ceiling. */
  personMilli: milli.nullable(),
  /** The largest single request for which the guarantee is proved to fit the devices; null: one GPU. */
  largestMilli: milli.nullable(),
  /** GPU-hours a month, thousandths; null: no budget. */
  budgetMilliHours: z.int().nullable(),
  /** Sum of the team's leases that have not ended. */
  usedMilli: z.int(),
});
export type QuotaView = z.infer<typeof quotaView>;

export const teamSummary = z.strictObject({
  id: teamId,
  name: z.string(),
  createdAt: instant,
  memberCount: z.int(),
  workspaceCount: z.int(),
  quotas: z.array(quotaView),
});
export type TeamSummary = z.infer<typeof teamSummary>;
export const teamList = z.strictObject({ teams: z.array(teamSummary) });
export type TeamList = z.infer<typeof teamList>;

export const teamInput = z.strictObject({ id: teamId });
export type TeamInput = z.input<typeof teamInput>;
export const teamView = teamSummary.extend({
  members: z.array(
    z.strictObject({ userId, name: z.string(), email: z.string(), role: teamRole, isSample: z.boolean() }),
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
});
export type SetQuotaInput = z.input<typeof setQuotaInput>;

export const addMemberInput = z.strictObject({ teamId, email, role: teamRole.default("member") });
export type AddMemberInput = z.input<typeof addMemberInput>;

export const removeMemberInput = z.strictObject({ teamId, userId });
export type RemoveMemberInput = z.input<typeof removeMemberInput>;
