/** GPU servers and the pool, as admins see and change them. Amounts are thousandths of a GPU, memory is bytes. */
import { z } from "zod";
import { editedVersion, gpuId, gpuServerId, gpuType, leaseId, pageSize, searchText, version } from "./common.ts";
import { runningKernel } from "./control.ts";
import { leaseOwner } from "./lease.ts";
import { typedLine } from "./typed-name.ts";

export const createJoinTokenInput = z.strictObject({
  /** What the server will be called; gpud may choose its own name when nothing is given. */
  name: z.string().min(1).max(63).optional(),
});
export type CreateJoinTokenInput = z.infer<typeof createJoinTokenInput>;

export const joinToken = z.strictObject({
  /** One-time, shown once. */
  token: z.string(),
  expiresAt: z.iso.datetime(),
  /** The command to run on the GPU host. */
  command: z.string(),
  /** Whether the command downloads gpud. If not, gpud must be present or built on the host. */
  downloads: z.boolean(),
  /** Why the command works on this machine only, and what to do. null: other hosts may reach its addresses. */
  warning: z.string().nullable(),
});
export type JoinToken = z.infer<typeof joinToken>;

export const installInput = z.strictObject({
  /** `script`: the install script; `gpud`: the program. The script has the checksum of the program. */
  file: z.enum(["script", "gpud"]),
});
export type InstallInput = z.infer<typeof installInput>;

export const gpuServerInput = z.strictObject({ serverId: z.string() });
export type GpuServerInput = z.infer<typeof gpuServerInput>;

export const drainGpuServerInput = z.strictObject({
  serverId: z.string(),
  /** false: takes leases again. */
  draining: z.boolean().default(true),
});
export type DrainGpuServerInput = z.input<typeof drainGpuServerInput>;

export const drainDeviceInput = z.strictObject({
  id: gpuId,
  /** false: takes leases again, as far as its server does. */
  draining: z.boolean().default(true),
});
export type DrainDeviceInput = z.input<typeof drainDeviceInput>;
export const drainDeviceOutput = z.strictObject({ id: gpuId, draining: z.boolean() });
export type DrainDeviceOutput = z.infer<typeof drainDeviceOutput>;

/** A server with all its devices, or one device. */
export const drainEffectsInput = z.union([z.strictObject({ serverId: gpuServerId }), z.strictObject({ gpuId })]);
export type DrainEffectsInput = z.infer<typeof drainEffectsInput>;
const whose = { id: z.string(), userName: z.string(), teamName: z.string(), workspaceName: z.string() };
export const drainEffects = z.strictObject({
  /** How many leases are held there. */
  leaseCount: z.int(),
  /** Who holds what there: it goes on to its end. At most 200, the latest first. */
  leases: z.array(
    z.strictObject({
      ...{ ...whose, gpuType: z.string(), milli: z.int(), usedMemoryBytes: z.int(), expiresAt: z.iso.datetime() },
      /** As much, of compute and of memory, is free now on one other device of the type. */
      fitsElsewhere: z.boolean(),
    }),
  ),
  /** Whose memory is parked there: it cannot come back while the device takes no leases. */
  parked: z.array(z.strictObject({ ...whose, parkedBytes: z.int() })),
  types: z.array(
    z.strictObject({
      gpuType: z.string(),
      /** What devices that take leases have, now and then. */
      openMilli: z.strictObject({ before: z.int(), after: z.int() }),
      /** What teams are guaranteed together. */
      guaranteedMilli: z.int(),
      /** The largest free piece that would be left. */
      largestFreeMilli: z.int(),
    }),
  ),
});
export type DrainEffects = z.infer<typeof drainEffects>;

export const setGpuServerZoneInput = z.strictObject({
  serverId: z.string(),
  /** What a request's `needs.zone` is compared with; null: not said. */
  zone: typedLine({ max: 64, needed: "A zone is needed." }).nullable(),
  version: editedVersion,
});
export type SetGpuServerZoneInput = z.input<typeof setGpuServerZoneInput>;

export const gpuServerState = z.enum(["joining", "online", "lost", "draining", "removed"]);

export const gpuServerView = z.strictObject({
  id: z.string(),
  name: z.string(),
  state: gpuServerState,
  dataAddress: z.string().nullable(),
  version: z.string().nullable(),
  /** Where it stands, as an admin says. */
  zone: z.string().nullable(),
  zoneVersion: version,
  /** The way there and back from the broker, as it measured, microseconds. */
  rttUs: z.int().nullable(),
  lastSeenAt: z.iso.datetime().nullable(),
  createdAt: z.iso.datetime(),
  deviceCount: z.int(),
  leaseCount: z.int(),
});
export type GpuServerView = z.infer<typeof gpuServerView>;
export const gpuServerList = z.strictObject({ servers: z.array(gpuServerView) });
export type GpuServerList = z.infer<typeof gpuServerList>;

export const removeGpuServerAnswer = z.strictObject({ serverId: z.string(), endedLeases: z.int() });
export type RemoveGpuServerAnswer = z.infer<typeof removeGpuServerAnswer>;

/** A lease as the pool page, the team page and the API list it. */
export const leaseListItem = z.strictObject({
  id: z.string(),
  state: z.enum(["granted", "active", "unreachable", "ending", "ended"]),
  gpuType: z.string(),
  milli: z.int(),
  memoryBytes: z.int(),
  borrowed: z.boolean(),
  gpuId: z.string(),
  deviceName: z.string(),
  serverId: z.string(),
  serverName: z.string(),
  teamId: z.string(),
  teamName: z.string(),
  userId: z.string(),
  userName: z.string(),
  workspaceId: z.string(),
  workspaceName: z.string(),
  owner: leaseOwner,
  usedMemoryBytes: z.int(),
  parkedBytes: z.int(),
  gpuTimeUs: z.int(),
  /** Time on the device while other leases wanted it too, and what the lease's share of such time was. */
  deliveredUs: z.int(),
  promisedUs: z.int(),
  /** Σ|delivered - promised|, report by report: too much and too little do not cancel. */
  deviationUs: z.int(),
  /** A kernel that has run for a second and more, where the device can tell. */
  running: runningKernel.nullable(),
  /** Compute used of the lease's own part in the last minute, 0..100. */
  computePercent: z.number(),
  grantedAt: z.iso.datetime(),
  claimedAt: z.iso.datetime().nullable(),
  expiresAt: z.iso.datetime(),
  /** When it reaches its idle limit if its GPU stays idle. null: it has ended, or the time is unknown. */
  idleEndsAt: z.iso.datetime().nullable(),
  /** When it will be taken back, for another team or with its server; null: it will not. */
  releaseAt: z.iso.datetime().nullable(),
  /** Taken back with its server: what is in GPU memory is lost, also when it is given back before. */
  leavesWithServer: z.boolean(),
  /** When its GPU last worked; null when it never did. */
  lastWorkAt: z.iso.datetime().nullable(),
  endedAt: z.iso.datetime().nullable(),
  endReason: z.string().nullable(),
  endNote: z.string().nullable(),
});
export type LeaseListItem = z.infer<typeof leaseListItem>;

export const listLeasesInput = z.strictObject({
  /** live: those that still count; ended: those that do not. */
  which: z.enum(["live", "ended", "all"]).default("live"),
  teamId: z.string().optional(),
  workspaceId: z.string().optional(),
  limit: z.coerce.number().int().min(1).max(500).default(200),
  /** The last lease of the page before. */
  after: leaseId.optional(),
  /** `csv` answers all of them as a file. */
  format: z.enum(["json", "csv"]).default("json"),
});
export type ListLeasesInput = z.input<typeof listLeasesInput>;
export const leaseList = z.strictObject({ leases: z.array(leaseListItem) });
export type LeaseList = z.infer<typeof leaseList>;
export const leasePage = leaseList.extend({
  /** All that match, on whichever page. */
  total: z.int(),
  /** What `after` is for the next page; null: this is the last. */
  next: z.string().nullable(),
});
export type LeasePage = z.infer<typeof leasePage>;

export const endLeaseInput = z.strictObject({
  leaseId: z.string(),
  /** What the person in the notebook reads besides who ended it. */
  note: z.string().max(200).optional(),
});
export type EndLeaseInput = z.infer<typeof endLeaseInput>;
export const endLeaseAnswer = z.strictObject({
  leaseId: z.string(),
  /** ending: gpud has been told and has not answered yet. */
  state: z.enum(["ending", "ended"]),
});
export type EndLeaseAnswer = z.infer<typeof endLeaseAnswer>;

/** What the hardware behind a device is, as gpud found it or an admin says: a card by itself, or a part of one. */
export const gpuKind = z.enum(["shared", "mig", "vgpu", "passthrough"]);
export type GpuKind = z.infer<typeof gpuKind>;

export const setGpuKindInput = z.strictObject({
  id: gpuId,
  kind: gpuKind,
  /** What it was when the edit was made; left out, whatever it is is replaced. */
  was: gpuKind.optional(),
});
export type SetGpuKindInput = z.input<typeof setGpuKindInput>;
export const setGpuKindOutput = z.strictObject({ id: gpuId, kind: gpuKind });
export type SetGpuKindOutput = z.infer<typeof setGpuKindOutput>;

/** What a team holds somewhere: told of every team, whoever looks. */
export const teamHolds = z.strictObject({ teamId: z.string(), teamName: z.string(), milli: z.int() });
export type TeamHolds = z.infer<typeof teamHolds>;

export const poolDevice = z.strictObject({
  id: z.string(),
  uuid: z.string(),
  name: z.string(),
  gpuType: z.string(),
  model: z.string(),
  computeCapability: z.string(),
  /** Devices of one server with the same one reach each other over NVLink; null: none that is known. */
  linkGroup: z.string().nullable(),
  kind: gpuKind,
  serverId: z.string(),
  serverName: z.string(),
  /** active: takes leases; lost: its server is not connected. */
  state: z.enum(["active", "draining", "lost"]),
  /** Drained by itself, not with its server. */
  drained: z.boolean(),
  memoryBytes: z.int(),
  leasedMilli: z.int(),
  leasedMemoryBytes: z.int(),
  usedMemoryBytes: z.int(),
  /** Share of the device's time that was used in the last minute, 0..100. */
  computePercent: z.number(),
  /** Who holds it, most first. */
  teams: z.array(teamHolds),
  /** Those that whoever looks may know: an admin all, a lead those of the led teams. */
  leases: z.array(leaseListItem),
});
export type PoolDevice = z.infer<typeof poolDevice>;

export const queueEntry = z.strictObject({
  requestId: z.string(),
  gpuType: z.string(),
  milli: z.int(),
  position: z.int(),
  of: z.int(),
  teamName: z.string(),
  userName: z.string(),
  workspaceName: z.string(),
  label: z.string().nullable(),
  /** The sentence of the rule that stops it. */
  reason: z.string(),
  rule: z.string(),
  waitingSince: z.iso.datetime(),
  /** Estimate until the grant; null: there is no basis for one, or it stands far back in a long queue. */
  likelySeconds: z.number().nullable(),
  /** Seconds until the idle limit, if `likelySeconds` is the time limit of a busy lease; else null. */
  soonestSeconds: z.number().nullable(),
});
export type QueueEntry = z.infer<typeof queueEntry>;

/** A type, milliseconds since 1970 and a request: where a page of the queue ended. */
export const queuePlace = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,31} [0-9]{1,15} [a-z0-9-]{1,40}$/, "Use the value of `next` from the previous page.");

export const poolQueueInput = z.strictObject({
  gpuType: gpuType.optional(),
  /** Words, each in the type, the person, the team, the workspace or the label of a request. */
  search: searchText.optional(),
  limit: pageSize(100),
  /** `next` of the page before; what has left the queue meanwhile makes no difference. */
  after: queuePlace.optional(),
  /** `csv` answers all of them as a file. */
  format: z.enum(["json", "csv"]).default("json"),
});
export type PoolQueueInput = z.input<typeof poolQueueInput>;

export const poolQueue = z.strictObject({
  /** How many wait for each type that somebody waits for, whoever they are. */
  queued: z.array(z.strictObject({ gpuType: z.string(), count: z.int() })),
  /** A page of them, one type after the other, as far as whoever looks may know them; their places are among all. */
  rows: z.array(queueEntry),
  /** All that match, on whichever page. */
  rowCount: z.int(),
  /** What `after` is for the next page; null: this is the last. */
  next: z.string().nullable(),
});
export type PoolQueue = z.infer<typeof poolQueue>;

/** GPUs of one type, together. */
export const poolTotal = z.strictObject({
  gpuType: z.string(),
  devices: z.int(),
  /** Of them on a server that is not connected. */
  lostDevices: z.int(),
  /** What devices that take leases have, thousandths. */
  capacityMilli: z.int(),
  leasedMilli: z.int(),
  /** Leased, and no GPU work for five minutes. */
  idleHeldMilli: z.int(),
  leasedMemoryBytes: z.int(),
  usedMemoryBytes: z.int(),
  queued: z.int(),
  /**
   * Somebody waits, and it is free, on devices that take leases, in pieces that none of those who wait could be given:
   * too small for each, without what they need, or on a card that its holder's team keeps for itself; thousandths.
   */
  strandedMilli: z.int(),
});
export type PoolTotal = z.infer<typeof poolTotal>;

export const poolDeviceList = z.strictObject({ devices: z.array(poolDevice) });
export type PoolDeviceList = z.infer<typeof poolDeviceList>;

export const poolMapInput = z.strictObject({
  /** Words, each in the name, zone or state of a server, in one of its devices, or in who holds them as far as one sees it. */
  search: searchText.optional(),
  limit: pageSize(200),
  /** The last server of the page before. */
  after: gpuServerId.optional(),
});
export type PoolMapInput = z.input<typeof poolMapInput>;

export const poolMapServer = gpuServerView.extend({
  /** Who holds what of it, most first. */
  teams: z.array(teamHolds.omit({ teamName: true })),
  devices: z.array(
    poolDevice
      .pick({
        ...{ id: true, name: true, gpuType: true, kind: true, state: true },
        ...{ leasedMilli: true, computePercent: true },
      })
      .extend({
        /** Leased, and no GPU work for five minutes. */
        idleHeldMilli: z.int(),
      }),
  ),
});
export type PoolMapServer = z.infer<typeof poolMapServer>;

export const poolMap = z.strictObject({
  totals: z.array(poolTotal),
  /** Who holds what of all of it, most first. */
  teams: z.array(teamHolds),
  /** A page of them. */
  servers: z.array(poolMapServer),
  /** All that match, on whichever page. */
  serverCount: z.int(),
  /** What `after` is for the next page; null: this is the last. */
  next: z.string().nullable(),
});
export type PoolMap = z.infer<typeof poolMap>;

export const poolOverview = z.strictObject({
  totals: z.array(poolTotal),
  servers: z.array(gpuServerView),
  devices: z.array(poolDevice),
  queue: z.array(queueEntry),
});
export type PoolOverview = z.infer<typeof poolOverview>;
