/**
 * The scheduler's world: plain data, no I/O and no clock. Amounts are thousandths of a GPU, memory is bytes,
 * times are milliseconds since 1970. One world holds one GPU type: types never compete with each other.
 */

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
};

/** A lease that counts: everything from grant until gpud has confirmed the end. */
export type Holding = {
  leaseId: string;
  teamId: string;
  userId: string;
  gpuId: string;
  milli: number;
  memoryBytes: number;
  /** Above the team's guaranteed quota when it was granted. */
  borrowed: boolean;
  expiresAt: number;
  /** Person's name, and what they call the notebook. */
  who: string;
  label?: string;
  /** When its GPU last worked (or the grant, when it never did). */
  lastWorkAt: number;
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
};

/** What a team may use of this type. A team without a quota may use nothing. */
export type Quota = { teamId: string; teamName: string; guaranteedMilli: number; limitMilli: number };

export type World = {
  gpuType: string;
  now: number;
  devices: Device[];
  holdings: Holding[];
  quotas: Map<string, Quota>;
  queue: Waiting[];
};

/** Where a request is placed. */
export type Placement = { gpuId: string; milli: number; memoryBytes: number; borrowed: boolean };

/** Which rule stops a request, with what the sentence about it needs. */
export type Obstacle =
  | { rule: "gpu-type" }
  | { rule: "amount"; why: "several-gpus" | "more-memory-than-a-device" }
  | { rule: "team-limit"; ever: boolean }
  | { rule: "guaranteed"; ever: boolean }
  | { rule: "pinned"; why: "gone" | "draining" | "away" | "busy" | "memory" }
  | { rule: "no-server" }
  | { rule: "order"; behind: string }
  | { rule: "free-device" };

/** queued: fits when something ends; refused: cannot fit under today's rules. */
export type Verdict =
  | { state: "granted"; requestId: string; placement: Placement }
  | { state: "queued"; requestId: string; position: number; of: number; obstacle: Obstacle }
  | { state: "refused"; requestId: string; obstacle: Obstacle };
