/**
 * The scheduler's world: plain data, no I/O and no clock. Amounts are thousandths of a GPU, memory is bytes,
 * times are milliseconds since 1970. One world holds one GPU type: types never compete with each other.
 */

import type { Calendar } from "./calendar.ts";

/** A device of the pool. */
export type Device = {
  id: string;
  /** Short name for people, e.g. `soft-0`. */
  name: string;
  serverId: string;
  serverName: string;
  /** Memory that leases may use. */
  memoryBytes: number;
  /** open: takes leases; draining: finishes what runs; away: its server is not connected; gone: removed for good. */
  state: "open" | "draining" | "away" | "gone";
  /** Devices of one server with the same link group reach each other directly (NVLink). */
  linkGroup?: string;
} & Labels;

/** What is known of a device's server and driver. A need for something unknown is not met. */
export type Labels = {
  zone?: string;
  /** Measured round trip to the server, microseconds. */
  rttUs?: number;
  /** As the driver counts: 12080 is CUDA 12.8. */
  cudaVersion?: number;
  /** NVIDIA's driver, e.g. `580.65.06`; the software GPU has none. */
  driverVersion?: string;
};

/** What a request needs of the device's labels. */
export type Needs = { zone?: string; maxRttUs?: number; minCudaVersion?: number; minDriverVersion?: string };

/** Which cards a team's leases may lie on. */
export type CoTenancy = "any" | "own-team" | "whole-cards";

/** A running notebook is interactive; a program of its own (`sluice run`) is batch. */
export type Kind = "interactive" | "batch";

/** Somebody was told that this lease will be taken back, for the sake of one request. */
export type Notice = { requestId: string; at: number; releaseAt: number };

/** A lease's part on one device. It counts from grant until gpud has confirmed the end. */
export type Holding = {
  leaseId: string;
  /** The lease of several GPUs that this is a part of; all parts begin and end together. */
  groupId?: string;
  teamId: string;
  userId: string;
  gpuId: string;
  milli: number;
  memoryBytes: number;
  /** Above the team's guaranteed quota when it was granted. */
  borrowed: boolean;
  /** Asked for with `--guaranteed`: never taken back. */
  guaranteedOnly?: boolean;
  grantedAt: number;
  expiresAt: number;
  /** Person's name, and what they call the notebook. */
  who: string;
  label?: string;
  /** When its GPU last worked (or the grant, when it never did). */
  lastWorkAt: number;
  /** gpud has been told to end it. */
  ending?: boolean;
  notice?: Notice;
};

/** One waiting request. */
export type Waiting = {
  requestId: string;
  teamId: string;
  userId: string;
  /** Name of the person, for those who wait behind. */
  who: string;
  /** Compute asked for; for a memory amount the least charge that any device of the type would make of it. */
  milli: number;
  /** Memory asked for by name; 0 when it follows from the compute. */
  memoryBytes: number;
  guaranteedOnly: boolean;
  pinnedGpuId?: string;
  createdAt: number;
  /** How long the lease will be held at most, milliseconds; the basis of estimates. */
  lengthMs: number;
  /** Order inside the team: larger is earlier. */
  rank?: number;
  kind?: Kind;
  /** How many devices the client can map; 1 when nothing is said. */
  maxDevices?: number;
  needs?: Needs;
  /** Devices that are kept for it while room is made there: what is freed is reserved for the claimant. */
  keptGpuIds?: string[];
};

/** GPU-hours of one period. A separate ledger, which does not decay. Thousandths of a GPU-hour. */
export type Budget = { milliHours: number; usedMilliHours: number; endsAt: number };

/** What a team may use of this type. A team without a quota may use nothing. */
export type Quota = {
  teamId: string;
  teamName: string;
  guaranteedMilli: number;
  limitMilli: number;
  /** How spare GPUs are split between teams of one priority; 1 when nothing is said. */
  weight?: number;
  /** Who gets spare GPUs first: larger is earlier; 0 when nothing is said. */
  priority?: number;
  /** The most that one person of the team may hold at once. */
  personMilli?: number;
  /** The largest single request that the guarantee is proved for. */
  largestMilli?: number;
  coTenancy?: CoTenancy;
  /** Average use of the recent past above the guarantee, decayed; it affects the surplus only. */
  recentMilli?: number;
  budget?: Budget;
  /** Idle time after which a lease of this team ends; the basis of estimates. */
  idleMs?: number;
  /** What the amounts follow from, where they differ by the time. */
  calendar?: Calendar;
  /** Times of the team's own leases, where they differ from the pool's. */
  times?: Partial<Policy>;
};

/** Times of the pool's rules. */
export type Policy = {
  /** A lease is not taken back before it has run so long. */
  minRunMs: number;
  /** From the first word to the release. */
  noticeMs: number;
};

/** No new leases: for all, for one team, or for one person. */
export type Stop = { scope: "all" | "team" | "user"; subjectId?: string; reason: string };

/**
 * A part of the pool that a team, or one person of it, has for a time (a class on Tuesday from 10 to 12), on top of
 * the team's guarantee.
 */
export type Reservation = {
  id: string;
  teamId: string;
  /** The only person of the team who may use it, with their name. */
  userId?: string;
  who?: string;
  milli: number;
  /** Size of the leases that it is for. */
  unitMilli: number;
  from: number;
  to: number;
};

export type World = {
  gpuType: string;
  now: number;
  devices: Device[];
  holdings: Holding[];
  quotas: Map<string, Quota>;
  queue: Waiting[];
  policy?: Policy;
  stops?: Stop[];
  reservations?: Reservation[];
  /** Which kind of work the type's calendar takes now, and when it takes the other; nothing means both. */
  open?: { kinds: Kind[]; nextAt?: number };
  /** Of those who wait, the ones whose place decides about others (`Round.bearing`), where a round has found that out. */
  bearing?: ReadonlySet<string>;
};

/** Where one device's part of a request is placed. */
export type Piece = { gpuId: string; milli: number; memoryBytes: number };

/** Where a request is placed. `milli` and `memoryBytes` are the sums; `gpuId` is the first device. */
export type Placement = Piece & { borrowed: boolean; pieces: Piece[] };

/** More of a quota from a time on, thousandths. */
export type More = { at: number; milli: number };

/** Which rule stops a request, with what the sentence about it needs. */
export type Obstacle =
  | { rule: "gpu-type" }
  | { rule: "amount"; why: "several-gpus" | "more-memory-than-a-device" | "more-than-the-pool" }
  | { rule: "team-limit"; ever: boolean; more?: More }
  | { rule: "person-limit"; ever: boolean }
  | { rule: "guaranteed"; ever: boolean; more?: More }
  | { rule: "budget"; resetsAt: number }
  | { rule: "stopped"; scope: Stop["scope"]; reason: string }
  | { rule: "calendar"; opensAt?: number }
  | { rule: "needs" }
  | { rule: "pinned"; why: "gone" | "draining" | "away" | "busy" | "memory" }
  | { rule: "no-server" }
  /** Room is being made: these leases have been told, and the last of them is released then. */
  | { rule: "reclaim"; releaseAt: number; leaseIds: string[] }
  | { rule: "order"; behind: string }
  | { rule: "free-device"; likelyAt?: number };

/** queued: fits when something ends; refused: cannot fit under today's rules. */
export type Verdict =
  | { state: "granted"; requestId: string; placement: Placement }
  | { state: "queued"; requestId: string; position: number; of: number; obstacle: Obstacle }
  | { state: "refused"; requestId: string; obstacle: Obstacle };

/** What one look at the queue calls for. Applying all of it is always safe. */
export type Round = {
  verdicts: Verdict[];
  /** Leases (all parts) to be told that they will be taken back. */
  notices: { leaseId: string; notice: Notice }[];
  /** Leases whose notice is withdrawn: what it was for is not needed any more. */
  withdrawn: string[];
  /** Requests whose kept devices changed, with the devices that are kept from now on. */
  kept: { requestId: string; gpuIds: string[] }[];
  /** Requests whose place decides about others: without all the rest, these would be judged as they are. */
  bearing: ReadonlySet<string>;
};
