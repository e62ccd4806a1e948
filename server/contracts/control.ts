/**
 * The control channel: JSON messages over a WebSocket that gpud dials (`GET /v1/control` on the broker).
 * The broker speaks first with a challenge; gpud answers with `hello`, signed by its own key.
 */
import { z } from "zod";

/** `POST /v1/gpu-servers/join`: a new gpud trades a one-time token for its place in the pool. */
export const joinInput = z.strictObject({
  token: z.string(),
  name: z.string().min(1).max(63),
  /** Ed25519 public key, base64url. */
  publicKey: z.string().length(43),
});
export type JoinInput = z.infer<typeof joinInput>;
export const joinAnswer = z.strictObject({ serverId: z.string() });
export type JoinAnswer = z.infer<typeof joinAnswer>;

/** What gpud recorded of a device; a client answers from it before anything is attached. */
export const deviceProfile = z.strictObject({
  name: z.string(),
  computeCapabilityMajor: z.int(),
  computeCapabilityMinor: z.int(),
  totalMemoryBytes: z.int(),
  /** What `cuDriverGetVersion` says: the CUDA version that the driver serves, 13050 for 13.5. */
  driverVersion: z.int(),
  /** The driver's own version, e.g. `580.65.06`; the software GPU has none. */
  driver: z.string().max(40).optional(),
  /** CUdevice_attribute number → value. */
  attributes: z.record(z.string(), z.int()),
});
export type DeviceProfile = z.infer<typeof deviceProfile>;

export const deviceReport = z.strictObject({
  /** `GPU-…`; stable for this device on this host. */
  uuid: z.string(),
  index: z.int().nonnegative(),
  gpuType: z.string(),
  model: z.string(),
  /** Memory that leases may use, bytes. */
  memoryBytes: z.int(),
  /** Devices of one server with the same one reach each other over NVLink; a gpud of before does not say. */
  linkGroup: z.string().min(1).max(40).optional(),
  profile: deviceProfile,
});
export type DeviceReport = z.infer<typeof deviceReport>;

/** A kernel that has run for a second and more, and how far it has come. */
export const runningKernel = z.strictObject({
  kernel: z.string(),
  blocksDone: z.int(),
  /** 0 where the device does not tell how many have ended. */
  blocks: z.int(),
  /** How long it has worked; a gpud of before does not say. */
  seconds: z.int().default(0),
});
export type RunningKernel = z.infer<typeof runningKernel>;

/**
 * For how much of a lease's GPU time the device's multiprocessors held warps ("SM active"): totals since it began,
 * microseconds. A kernel that fills a quarter of them for a second makes a quarter of a second.
 */
export const smActivity = z.strictObject({
  /** Averaged over all of the device's multiprocessors; at most `knownUs`. */
  activeUs: z.int(),
  /** Of the lease's GPU time, that for which it is known: while gpud could not ask the device, nobody knows. */
  knownUs: z.int(),
  /**
   * Of `activeUs`, what was estimated: the device does not count it and tells only for how much of the time any kernel
   * ran, which is more.
   */
  estimatedUs: z.int(),
});
export type SmActivity = z.infer<typeof smActivity>;

export const leaseUsage = z.strictObject({
  leaseId: z.string(),
  /** Connected client processes. */
  sessions: z.int(),
  memoryBytes: z.int(),
  parkedBytes: z.int(),
  /** Totals since the lease began. */
  gpuTimeUs: z.int(),
  /** Null where it has never been known; a gpud of before does not say. */
  smActivity: smActivity.nullable().default(null),
  /** Time on the device while other leases wanted it too, and what the lease's share of such time was. */
  deliveredUs: z.int(),
  promisedUs: z.int(),
  calls: z.int(),
  bytesIn: z.int(),
  bytesOut: z.int(),
  /** What runs now, where the device can tell; a gpud of before does not say. */
  running: runningKernel.nullable().default(null),
});
export type LeaseUsage = z.infer<typeof leaseUsage>;

/** gpud → broker. */
export const gpudMessage = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("hello"),
    serverId: z.string(),
    version: z.string(),
    protocol: z.int(),
    /** Ed25519 signature over the ASCII bytes `sluice-control-1` || the 32 decoded bytes of the nonce, base64url. */
    signature: z.string(),
    /** The token of its account, where it runs on a cluster: in which pod and on which node that is. */
    account: z.string().max(16_384).optional(),
    /** Where clients reach the data plane. */
    dataAddress: z.string(),
    tlsFingerprint: z.string().nullable(),
    devices: z.array(deviceReport),
    /** Leases whose workers are here, so that the broker can reconcile. */
    held: z.array(leaseUsage),
  }),
  /** Every second while something changes. */
  z.strictObject({ type: z.literal("usage"), leases: z.array(leaseUsage) }),
  z.strictObject({ type: z.literal("session-opened"), leaseId: z.string(), sessionId: z.string() }),
  /** `clean`: the client said goodbye; otherwise the connection was lost. */
  z.strictObject({ type: z.literal("session-closed"), leaseId: z.string(), sessionId: z.string(), clean: z.boolean() }),
  z.strictObject({ type: z.literal("lease-ended"), leaseId: z.string(), parkedBytes: z.int(), gpuTimeUs: z.int() }),
  z.strictObject({ type: z.literal("pong"), nonce: z.string() }),
]);
export type GpudMessage = z.infer<typeof gpudMessage>;

/** broker → gpud. */
export const brokerMessage = z.discriminatedUnion("type", [
  /** 32 random bytes, base64url without padding. */
  z.strictObject({ type: z.literal("challenge"), nonce: z.string() }),
  z.strictObject({
    type: z.literal("welcome"),
    serverId: z.string(),
    epoch: z.int(),
    /** Public keys that sign session tokens: kid → Ed25519 public key, base64url. */
    keys: z.record(z.string(), z.string()),
    /** Leases that hold; gpud ends the workers of every other one. */
    leases: z.array(z.string()),
  }),
  /** Answered by `lease-ended`, also for a lease that gpud does not know (0 bytes parked); sent again until answered. */
  z.strictObject({
    type: z.literal("end-lease"),
    leaseId: z.string(),
    /** park: keep memory in the host for the same client; kill: end the workers. */
    mode: z.enum(["park", "kill"]),
    /** The sentence that the client process gets. */
    reason: z.string(),
  }),
  /** Parked memory of these leases is dropped. */
  z.strictObject({ type: z.literal("drop-parked"), leaseId: z.string() }),
  z.strictObject({ type: z.literal("ping"), nonce: z.string() }),
  z.strictObject({ type: z.literal("removed"), reason: z.string() }),
]);
export type BrokerMessage = z.infer<typeof brokerMessage>;
