/**
 * Who is alive, and what follows from it. Pure: facts and a time go in, what has to be done comes out. Times are
 * milliseconds since 1970.
 */
import type { LeaseOwner } from "#server/contracts/lease.ts";
import { PARK_MS } from "#server/scheduler/notice.ts";
import type { EndReason } from "#server/services/lease/ending.ts";
import { sameOwner } from "#server/services/lease/owners.ts";

export const limits = {
  /** A grant that nothing connects to goes to the next. */
  unclaimedMs: 60_000,
  /** A client that lost its long poll to a broker that died asks again within this time and claims its grant. */
  claimChanceMs: 10_000,
  /** A lost connection may come back for so long. */
  disconnectedMs: 30_000,
  /** A grant to a kernel that the workspace does not list as alive. */
  unlistedMs: 5_000,
  /** A request whose client has stopped asking leaves the queue. */
  unpolledMs: 30_000,
  /** A gpud that is not heard for so long is lost: its leases are unreachable and still count. */
  silentMs: 10_000,
  /** A gpud that is not heard for so long has its leases closed and its epoch raised, and leads are told. */
  closedMs: 60_000,
} as const;

/** The clocks of brokers differ by less. A time further ahead was written before the clock was set back. */
const CLOCK_DIFFERENCE_MS = 60_000;

export type LeaseFact = {
  id: string;
  /** What it was granted to; of several GPUs that one request got, each is a lease. */
  requestId: string;
  state: "granted" | "active" | "unreachable";
  workspaceId: string;
  serverId: string;
  owner: LeaseOwner;
  grantedAt: number;
  claimedAt: number | null;
  /** A report made since the grant lists the owner as alive. */
  isOwnerSeen: boolean;
  /** Start of the chance to claim after a break of the brokers; null: no chance was given. */
  claimChanceAt: number | null;
  disconnectedAt: number | null;
  expiresAt: number;
  /** Told to be taken back: when it is released. */
  releaseAt: number | null;
  /** Not for another team's sake, but because its GPU server goes out of service. */
  withServer: boolean;
  /** When its GPU last worked, and after how much idle time it ends. */
  lastWorkAt: number;
  idleMs: number;
  workspaceRuns: boolean;
};
/** A lease that gpud is parking. */
type ParkingFact = { id: string; since: number };
export type RequestFact = { id: string; lastPolledAt: number; waitUntil: number; workspaceRuns: boolean };
export type ServerFact = {
  id: string;
  state: "online" | "draining" | "lost";
  lastSeenAt: number;
  holdsLeases: boolean;
  /** Those whose guarantees this loss makes smaller have been told. */
  isTold: boolean;
};
type OwnersFact = { workspaceId: string; reportedAt: number; alive: LeaseOwner[] };

export type Facts = {
  leases: LeaseFact[];
  parking: ParkingFact[];
  requests: RequestFact[];
  servers: ServerFact[];
  owners: OwnersFact[];
};

export type Measure =
  | { do: "end-lease"; leaseId: string; requestId: string; reason: EndReason; mode: "park" | "kill"; note?: string }
  /** Starts the chance to claim of `judgeUnclaimed`. */
  | { do: "give-claim-chance"; leaseId: string }
  /** gpud has not parked it in time: its workers are ended. */
  | { do: "stop-parking"; leaseId: string }
  | { do: "leave-queue"; requestId: string; state: "expired" | "cancelled" }
  | { do: "lose-server"; serverId: string; lastHeard: number }
  | { do: "close-server"; serverId: string }
  /** It is lost for longer than a lost connection: who misses it is told. */
  | { do: "tell-of-loss"; serverId: string; lastHeard: number };

/**
 * What silence and time call for. `watchingSince` is when somebody began to listen without a break: nobody is judged
 * by a silence during which there was nobody to hear (a broker that was killed, a machine that was suspended, a database
 * that was away).
 */
export function judge(facts: Facts, now: number, watchingSince: number): Measure[] {
  // Nothing would be silent until the clock shows such a time again, for an hour or for years.
  const passed = (at: number) => (at > now + CLOCK_DIFFERENCE_MS ? watchingSince : at);
  const silentFor = (since: number) => now - Math.max(passed(since), watchingSince);
  const workedAt = new Map<string, number>();
  for (const { requestId, lastWorkAt } of facts.leases) {
    workedAt.set(requestId, Math.max(workedAt.get(requestId) ?? 0, lastWorkAt));
  }
  const leaving = new Set(facts.leases.flatMap(({ requestId, withServer }) => (withServer ? [requestId] : [])));
  // Who works on one of several GPUs is not idle on the others, and all of them end together.
  const leases = facts.leases.map((lease) => ({
    ...lease,
    grantedAt: passed(lease.grantedAt),
    claimChanceAt: lease.claimChanceAt === null ? null : passed(lease.claimChanceAt),
    lastWorkAt: workedAt.get(lease.requestId) ?? lease.lastWorkAt,
    withServer: leaving.has(lease.requestId),
  }));
  return [
    ...leases.flatMap((lease) => judgeLease(lease, facts.owners, now, silentFor)),
    ...facts.parking.flatMap((lease): Measure[] =>
      silentFor(lease.since) >= PARK_MS ? [{ do: "stop-parking", leaseId: lease.id }] : [],
    ),
    ...facts.requests.flatMap((request) => judgeRequest(request, now, silentFor)),
    ...facts.servers.flatMap((server) => judgeServer(server, silentFor)),
  ];
}

type SilentFor = (since: number) => number;

function judgeLease(lease: LeaseFact, owners: OwnersFact[], now: number, silentFor: SilentFor): Measure[] {
  const end = (reason: EndReason, mode: "park" | "kill", note?: string): Measure[] => [
    {
      do: "end-lease",
      leaseId: lease.id,
      requestId: lease.requestId,
      reason,
      mode,
      ...(note === undefined ? {} : { note }),
    },
  ];
  if (!lease.workspaceRuns) return end("workspace stopped", "kill");
  if (lease.expiresAt <= now) return end("time up", "park");
  if (lease.releaseAt !== null && lease.releaseAt <= now)
    return lease.withServer
      ? end("taken back", "kill", "its GPU server goes out of service")
      : end("taken back", "park");
  if (lease.claimedAt === null) {
    if (ownerUnlisted(lease, owners)) return end("owner gone", "kill");
    return judgeUnclaimed(lease, now, silentFor, () => end("never used", "kill"));
  }
  if (lease.disconnectedAt !== null && silentFor(lease.disconnectedAt) >= limits.disconnectedMs) {
    return end("owner gone", "kill");
  }
  // A GPU that cannot be heard may well work; and who was told until when to save does not lose it before.
  const idle = lease.state === "active" && !lease.withServer && silentFor(lease.lastWorkAt) >= lease.idleMs;
  return idle ? end("idle", "park") : [];
}

/**
 * A grant without any sign of its owner ends 60 s after the time in its row, whether brokers listened or not: brokers
 * that keep dying would otherwise hold GPUs for owners that are long gone, while other people wait.
 *
 * A broker that dies also cuts the long poll that carries the grant. The client learns of the grant only from the next
 * broker. So a grant does not end before a broker has listened for 10 s: a client asks again every second, and a gpud
 * connects again within 5 s. The start of this chance is written to the row, and a lease has one chance: brokers that
 * each live for 5 s cannot renew the chance. The lease ends at the latest 10 s after the first look that finds the 60 s
 * over. Only a time without any broker adds to these 70 s, and nothing is granted to anybody in such a time.
 *
 * An owner that a report has listed since the grant is alive, and may not have reached a dead broker: such a grant ends
 * after 60 s of unbroken listening.
 */
function judgeUnclaimed(lease: LeaseFact, now: number, silentFor: SilentFor, end: () => Measure[]): Measure[] {
  if (lease.isOwnerSeen) return silentFor(lease.grantedAt) >= limits.unclaimedMs ? end() : [];
  if (now - lease.grantedAt < limits.unclaimedMs) return [];
  if (silentFor(lease.grantedAt) >= limits.claimChanceMs) return end();
  if (lease.claimChanceAt === null) return [{ do: "give-claim-chance", leaseId: lease.id }];
  return now - lease.claimChanceAt >= limits.claimChanceMs ? end() : [];
}

/** The kernel died while it was being granted: a report made well after the grant does not name it. */
function ownerUnlisted(lease: LeaseFact, owners: OwnersFact[]): boolean {
  if (lease.owner.kind !== "kernel") return false;
  const report = owners.find((candidate) => candidate.workspaceId === lease.workspaceId);
  if (report === undefined || report.reportedAt < lease.grantedAt + limits.unlistedMs) return false;
  return !report.alive.some((owner) => sameOwner(owner, lease.owner));
}

function judgeRequest(request: RequestFact, now: number, silentFor: SilentFor): Measure[] {
  if (!request.workspaceRuns) return [{ do: "leave-queue", requestId: request.id, state: "cancelled" }];
  if (request.waitUntil <= now) return [{ do: "leave-queue", requestId: request.id, state: "expired" }];
  if (silentFor(request.lastPolledAt) < limits.unpolledMs) return [];
  return [{ do: "leave-queue", requestId: request.id, state: "cancelled" }];
}

function judgeServer(server: ServerFact, silentFor: SilentFor): Measure[] {
  const silent = silentFor(server.lastSeenAt);
  if (server.state === "lost") {
    if (silent < limits.closedMs) return [];
    return [
      ...(server.holdsLeases ? [{ do: "close-server" as const, serverId: server.id }] : []),
      ...(server.isTold ? [] : [{ do: "tell-of-loss" as const, serverId: server.id, lastHeard: server.lastSeenAt }]),
    ];
  }
  if (silent < limits.silentMs) return [];
  return [{ do: "lose-server", serverId: server.id, lastHeard: server.lastSeenAt }];
}
