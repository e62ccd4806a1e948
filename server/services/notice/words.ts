/** What people are told, in the words of the house. */
import { createHash } from "node:crypto";
import type { Restarted } from "#server/launchers/launcher.ts";
import { formatQuota } from "#server/scheduler/amount.ts";
import { formatSpan } from "#server/span.ts";
import type { Notice } from "./write.ts";

/** Somebody's lease, as far as the words need it. */
export type TheirLease = {
  /** The request it was granted for: one name for all devices of a lease. */
  requestId: string;
  userId: string;
  workspaceId: string;
  gpuType: string;
  milli: number;
  /** What its holder calls the notebook. */
  label?: string | undefined;
};

const amountOf = ({ milli, gpuType }: { milli: number; gpuType: string }) => `${formatQuota(milli)} ${gpuType}`;
/** A notebook's own name keeps its first letter as it is, also where a sentence begins with it. */
const nameOf = ({ label }: TheirLease, unnamed = "the notebook") => label ?? unnamed;
const gpuPage = ({ workspaceId }: TheirLease) =>
  workspaceId.startsWith("pod-") ? "/gpus" : `/workspaces/${workspaceId}/gpu`;

/** The key of a lease's reclaim, to take it back when the lease may stay. */
export const reclaimKey = (requestId: string) => `reclaim/${requestId}`;

/** Another team needs it, and its holder may save until then. */
export function reclaimed(lease: TheirLease, byTeam: string | undefined, releaseAt: Date): Notice {
  return {
    userId: lease.userId,
    kind: "reclaim",
    key: reclaimKey(lease.requestId),
    title: `Your ${amountOf(lease)} will be taken back`,
    body:
      `${byTeam === undefined ? "Another team" : `Team ${byTeam}`} needs what is guaranteed to it. ` +
      `${nameOf(lease, "The notebook")} lives on, and what is in GPU memory is kept.`,
    href: gpuPage(lease),
    dueAt: releaseAt,
  };
}

/** The key of what is told before a GPU server goes out of service, to take it back when it stays. */
export const serverKey = (requestId: string, endsAt: Date) => `update/${requestId}/${endsAt.getTime()}`;

/** Its GPU server is about to be replaced, or to end with its node; `parked`: the lease has ended, and its memory is still there. */
export function leaving(lease: TheirLease, endsAt: Date, parked: boolean): Notice {
  const what = amountOf(lease);
  return {
    userId: lease.userId,
    kind: "reclaim",
    key: serverKey(lease.requestId, endsAt),
    title: parked ? `GPU memory kept for your ${what} will be dropped` : `Your ${what} will be taken back`,
    body:
      `Its GPU server goes out of service. ${nameOf(lease, "The notebook")} lives on; what is in GPU memory then is lost. ` +
      (parked ? "Load it again when you next borrow a GPU." : "Save it before, give the GPU back, and borrow another."),
    href: gpuPage(lease),
    dueAt: endsAt,
  };
}

/** It does no GPU work; `lastWorkAt` tells one idle stretch from the next. */
export function idling(lease: TheirLease, lastWorkAt: Date, endsAt: Date): Notice {
  return {
    userId: lease.userId,
    kind: "idle",
    key: `idle/${lease.requestId}/${lastWorkAt.getTime()}`,
    title: `Your ${amountOf(lease)} does nothing`,
    body: `Without GPU work in ${nameOf(lease)} it is given back; the notebook lives, and its GPU memory is kept.`,
    href: gpuPage(lease),
    dueAt: endsAt,
  };
}

/** A workspace that nobody works in, and after how many seconds of that it stops. */
export type IdleWorkspace = { id: string; name: string; userId: string; limit: number };

/** It stops by itself; who is still there has the time to say so. */
export function stopping({ id, name, userId, limit }: IdleWorkspace, stopsAt: Date): Notice {
  return {
    userId,
    kind: "workspace-stop",
    key: `stop/${id}/${stopsAt.getTime()}`,
    title: `${name} will be stopped`,
    body:
      `Nothing has happened there for most of ${formatSpan(limit)}. Notebooks that are open lose what is only in memory; ` +
      "files and packages are kept. Extend it on its page, or work on.",
    href: `/workspaces/${id}`,
    dueAt: stopsAt,
  };
}

/** The key of a move, to take it back when the workspace may stay. */
export const moveKey = ({ id }: { id: string }, movesAt: Date) => `move/${id}/${movesAt.getTime()}`;

/** The node that it runs on is being emptied. */
export function moving(workspace: { id: string; name: string; ownerId: string }, movesAt: Date): Notice {
  return {
    userId: workspace.ownerId,
    kind: "workspace-move",
    key: moveKey(workspace, movesAt),
    title: `${workspace.name} will be started again on another machine`,
    body:
      "The one that it runs on is being emptied for maintenance. Notebooks that are open then lose what is only in " +
      "memory; files and packages are kept. Restart it yourself at a time that suits you better.",
    href: `/workspaces/${workspace.id}`,
    dueAt: movesAt,
  };
}

/** What happened to a workspace that was started again, after its name. */
export function restartedTitle({ cause }: Pick<Restarted, "cause">): string {
  if (cause === "program") return "ran out of memory, and a program was ended";
  const what = { memory: "ran out of memory", itself: "ended by itself", machine: "ended with its machine" }[cause];
  return `${what} and was started again`;
}

/** Its server ended by itself; `sentence` says why and what to do. */
export function restarted(
  workspace: { id: string; name: string; ownerId: string },
  { at, cause, sentence }: Restarted,
): Notice {
  return {
    userId: workspace.ownerId,
    kind: "workspace-restarted",
    key: `restarted/${workspace.id}/${at.getTime()}`,
    title: `${workspace.name} ${restartedTitle({ cause })}`,
    body: sentence,
    href: `/workspaces/${workspace.id}`,
  };
}

/** The key of an invitation, to take it back with what it gave. */
export const invitationKey = (workspaceId: string, userId: string) => `invited/${workspaceId}/${userId}`;

/** Somebody lets this person into a workspace. */
export function invited(
  userId: string,
  ownerName: string,
  { id, name, role }: { id: string; name: string; role: "viewer" | "editor" },
): Notice {
  return {
    userId,
    kind: "invited",
    key: invitationKey(id, userId),
    title: `${ownerName} invited you to ${name} as ${role === "viewer" ? "a viewer" : "an editor"}`,
    body:
      role === "viewer"
        ? "You see its files and saved results; you change and run nothing there."
        : "You work in its notebooks as its owner does, on the GPUs of its owner and team.",
    href: `/workspaces/${id}`,
  };
}

/** Somebody has set a new password for this person, who should know of it when it was somebody else. */
export function passwordSet(userId: string, at: Date, by: "change" | "link", address: string | undefined): Notice {
  const from = address === undefined ? "" : ` from ${address}`;
  return {
    userId,
    kind: "password",
    key: `password/${at.getTime()}`,
    title: by === "change" ? "Your password was changed" : "Your password was set anew by a link",
    body: `That was done${from}, and ended your sign-in sessions elsewhere. If it was not you, tell an admin at once.`,
    href: "/settings",
  };
}

const MOST_OF_A_NAME = 100;
const shortened = (name: string) => (name.length > MOST_OF_A_NAME ? `${name.slice(0, MOST_OF_A_NAME)}…` : name);

/** A kernel of this lease runs longer than its team's policy says; `userId` is its holder or leads the team. */
export function longKernel(
  userId: string,
  lease: TheirLease,
  run: { kernel: string; seconds: number; team: string },
): Notice {
  const { kernel, seconds, team } = run;
  return {
    userId,
    kind: "long-kernel",
    // A kernel's name is the program's, and of any length.
    key: `long-kernel/${lease.requestId}/${createHash("sha256").update(kernel).digest("hex").slice(0, 16)}`,
    title: `A kernel of ${nameOf(lease)} has run for ${formatSpan(seconds)}`,
    body:
      `${shortened(kernel)}, of team ${team}, on ${amountOf(lease)}: who shares the device waits until it ends. ` +
      "Split it into shorter launches, or stop it by interrupting the notebook.",
    href: gpuPage(lease),
  };
}

/** Its turn came while its owner may have been elsewhere. */
export function granted(lease: TheirLease, waitedMs: number): Notice {
  return {
    userId: lease.userId,
    kind: "granted",
    key: `granted/${lease.requestId}`,
    title: `You have ${amountOf(lease)}`,
    body: `${nameOf(lease, "The notebook")} waited ${formatSpan(waitedMs / 1000)} for it.`,
    href: gpuPage(lease),
  };
}

/** What a team has used of its GPU-hours; thousandths of an hour. */
export type BudgetLevel = {
  teamId: string;
  teamName: string;
  gpuType: string;
  /** `2026-11` */
  month: string;
  level: number;
  milliHours: number;
  usedMilliHours: number;
  /** When nothing is left if it goes on like this. */
  spentAt?: Date | undefined;
};

/** One of the people of a team whose GPU-hours have reached a level. */
export function budgetReached(userId: string, budget: BudgetLevel): Notice {
  const { teamId, teamName, gpuType, month, level, milliHours, usedMilliHours } = budget;
  const used = `${formatQuota(usedMilliHours)} of ${formatQuota(milliHours)} GPU-hours of ${month} are used.`;
  const next =
    level >= 100
      ? "Until the month ends the team gets no new GPUs of this type. An admin can raise the budget."
      : "Who works on can see on the team's page how long the rest lasts.";
  return {
    userId,
    kind: "budget",
    key: `budget/${teamId}/${gpuType}/${month}/${level}`,
    title:
      level >= 100
        ? `Team ${teamName} has used its ${gpuType} budget`
        : `Team ${teamName} is at ${level} % of its ${gpuType} budget`,
    body: `${used} ${next}`,
    href: `/teams/${teamName}`,
    dueAt: budget.spentAt ?? null,
  };
}

/** What a member asked for on top of the quota. */
export type AskedFor = {
  id: string;
  teamName: string;
  gpuType: string;
  limitMilli: number;
  startsAt: Date;
  endsAt: Date;
  createdAt: Date;
  reason: string;
};

/** The time of what was asked for: ` from 2026-11-24 10:00 UTC`, or nothing when it was asked for at once. */
function fromWhen({ startsAt, createdAt }: AskedFor): string {
  return startsAt <= createdAt ? "" : ` from ${startsAt.toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

/** Somebody of the team wants more, and this person decides. */
export function quotaAsked(userId: string, who: string, asked: AskedFor): Notice {
  return {
    userId,
    kind: "quota-request",
    key: `quota-request/${asked.id}/asked`,
    title: `${who} asks for ${formatQuota(asked.limitMilli)} ${asked.gpuType} more for team ${asked.teamName}${fromWhen(asked)}`,
    body: asked.reason,
    href: `/teams/${asked.teamName}`,
  };
}

/** The answer to who asked. */
export function quotaDecided(userId: string, approved: boolean, asked: AskedFor): Notice {
  return {
    userId,
    kind: "quota-request",
    key: `quota-request/${asked.id}/decided`,
    title: `${formatQuota(asked.limitMilli)} ${asked.gpuType} more for team ${asked.teamName}: ${approved ? "approved" : "refused"}`,
    body: approved
      ? `It is on top of the team's quota${fromWhen(asked)} until it ends alone.`
      : `You asked: ${asked.reason}`,
    href: `/teams/${asked.teamName}`,
  };
}

/** What a team is guaranteed of a GPU type now, and would be with all servers there. */
export type GuaranteeNow = { teamId: string; teamName: string; gpuType: string; nowMilli: number; milli: number };
type Server = { id: string; name: string };

/** The key of what is told when a server is lost that was last heard at this time: a loss is told once. */
function lostKey(server: Pick<Server, "id">, lastHeard: Date, { teamId, gpuType }: GuaranteeNow): string {
  return `guarantee/lost/${server.id}/${lastHeard.getTime()}/${teamId}/${gpuType}`;
}

/** What such a key is about; undefined for another key. */
export function lostFrom(key: string): { serverId: string; teamId: string; gpuType: string } | undefined {
  const [, serverId, teamId, gpuType] = /^guarantee\/lost\/([^/]+)\/\d+\/([^/]+)\/(.+)$/.exec(key) ?? [];
  return serverId === undefined || teamId === undefined || gpuType === undefined
    ? undefined
    : { serverId, teamId, gpuType };
}

/** The key of what is told when that is over. */
export const backKey = (lost: string) => lost.replace("guarantee/lost/", "guarantee/back/");

/** A lead hears that a lost server leaves the team less than it is guaranteed. */
export function guaranteeLess(userId: string, server: Server, lastHeard: Date, guarantee: GuaranteeNow): Notice {
  const { teamName } = guarantee;
  return {
    userId,
    kind: "guarantee",
    key: lostKey(server, lastHeard, guarantee),
    title: `Team ${teamName} is guaranteed ${guaranteedNow(guarantee)}`,
    body: `GPU server ${server.name} does not answer. Until it is back, every team's guarantee is scaled down in proportion.`,
    href: `/teams/${teamName}`,
  };
}

/** What was told under this key is over: all of the guarantee holds again. */
export function guaranteeBack(userId: string, lost: string, guarantee: GuaranteeNow): Notice {
  return {
    userId,
    kind: "guarantee",
    key: backKey(lost),
    title: `Team ${guarantee.teamName} is guaranteed ${guaranteedNow(guarantee)}`,
    body: "The GPU devices that are there are enough for all guarantees again.",
    href: `/teams/${guarantee.teamName}`,
  };
}

function guaranteedNow({ nowMilli, milli, gpuType }: GuaranteeNow): string {
  return nowMilli < milli
    ? `${formatQuota(nowMilli)} of its ${formatQuota(milli)} ${gpuType} now`
    : `its ${formatQuota(milli)} ${gpuType} again`;
}
