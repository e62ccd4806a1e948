import { writeDuration } from "#components/duration.ts";
import type { TeamPolicyView } from "#server/contracts/sharing.ts";

export type PolicyTime = Exclude<
  keyof TeamPolicyView["installation"],
  "customSizes" | "maxCpuMilli" | "maxMemoryBytes"
>;
export type CoTenancy = TeamPolicyView["coTenancy"];
export type ComputeCeiling = TeamPolicyView["computeCeiling"];

/** The times of a policy in the order in which they are read, with what each of them does. */
export const POLICY_TIMES: { name: PolicyTime; label: string; does: (time: string) => string; never?: string }[] = [
  {
    name: "idleSeconds",
    label: "Idle limit of a GPU",
    does: (time) => `After ${time} without GPU work it is warned, parked and released; the notebook lives.`,
  },
  {
    name: "maxLeaseSeconds",
    label: "Longest lease",
    does: (time) => `It ends ${time} after it was granted, extensions included. What runs keeps its end.`,
  },
  {
    name: "minRunSeconds",
    label: "Minimum run time",
    does: (time) => `What is borrowed is not taken back before it has run ${time}.`,
  },
  {
    name: "noticeSeconds",
    label: "Notice",
    does: (time) => `Who has to give a borrowed GPU back is told ${time} before.`,
  },
  {
    name: "longKernelSeconds",
    label: "Long kernel",
    does: (time) => `A kernel that runs for ${time} is told to its holder and the leads, and audited.`,
    never: "However long a kernel runs, nobody is told.",
  },
  {
    name: "workspaceIdleSeconds",
    label: "Idle limit of a workspace",
    does: (time) => `After ${time} without activity it stops; its files stay.`,
    never: "It runs until somebody stops it.",
  },
];

export const CO_TENANCY: Record<CoTenancy, { label: string; does: string }> = {
  any: { label: "Shares with every team", does: "Parts of one card may be held by several teams." },
  "own-team": { label: "Shares inside the team", does: "No other team is on a card that this team holds a part of." },
  "whole-cards": { label: "Whole cards only", does: "A request for 0.5 takes, and is charged for, a whole card." },
};

export const COMPUTE_CEILING: Record<ComputeCeiling, { label: string; does: string }> = {
  none: { label: "Share, and what is idle", does: "A lease also uses what others on its card leave idle." },
  share: {
    label: "Share alone",
    does: "A lease never has more of its card than its share, so its speed stays the same.",
  },
};

/** What counts: the team's own time, or the installation's. */
export function timeThatCounts(policy: TeamPolicyView, name: PolicyTime): { text: string; own: boolean } {
  const own = policy[name];
  const seconds = own ?? policy.installation[name];
  const never = POLICY_TIMES.find((one) => one.name === name)?.never !== undefined && seconds === 0;
  return { text: never ? "never" : writeDuration(seconds), own: own !== null };
}

/** What a time does, as a sentence. */
export function effectOf(name: PolicyTime, text: string): string {
  const time = POLICY_TIMES.find((one) => one.name === name);
  if (time === undefined) return "";
  return text === "never" && time.never !== undefined ? time.never : time.does(text);
}
