/**
 * The lease API: what a workspace says to the broker to borrow a GPU, and what the broker answers.
 * Amounts are integers in thousandths of a GPU (500 = half a GPU), memory is bytes, times are ISO 8601 in UTC.
 */
import { z } from "zod";
import { runningKernel } from "./control.ts";

/** A process *start*: a reused pid is not mistaken for its owner. */
export const leaseOwner = z.strictObject({
  kind: z.enum(["kernel", "process", "workspace"]),
  kernelId: z.string().max(64).optional(),
  pid: z.int().positive(),
  /** Field 22 of /proc/PID/stat: start time in clock ticks after boot. */
  startTime: z.int().nonnegative(),
  /** What people read, e.g. `kmeans.ipynb`. */
  label: z.string().max(200).optional(),
});
export type LeaseOwner = z.infer<typeof leaseOwner>;

/** `POST /v1/lease-requests`. */
/** What a request, or an environment, needs of the device and its server. What is not known of a device is not met. */
export const deviceNeeds = z.strictObject({
  zone: z.string().max(64).optional(),
  maxRttUs: z.int().positive().optional(),
  /** As the driver counts: 12080 is CUDA 12.8. */
  minCudaVersion: z.int().positive().optional(),
  /** NVIDIA's driver, as `nvidia-smi` shows it: `580` or `580.65.06`. */
  minDriverVersion: z
    .string()
    .regex(/^\d{1,5}(\.\d{1,5}){0,2}$/, "A driver version looks like 580 or 580.65.06.")
    .optional(),
});
export type DeviceNeeds = z.infer<typeof deviceNeeds>;

export const leaseRequestInput = z.strictObject({
  /** Idempotency key: the same key in one workspace is one request and at most one lease. */
  requestId: z.uuid(),
  /** What people type: `0.5`, `2` (GPUs), `40G` (GPU memory); empty means the workspace's default. */
  amount: z.string().max(32).default(""),
  /** GPU memory (`8G`) beside an amount that is a part of a GPU; nothing means the memory that goes with it. */
  memory: z.string().max(32).optional(),
  gpuType: z.string().max(32).optional(),
  /** Only inside the team's guaranteed quota; such a lease is never taken back. */
  guaranteed: z.boolean().default(false),
  /** How long the client will wait in the queue; 0 = now or refused. */
  waitSeconds: z.int().min(0).max(86_400).default(120),
  /** How long the lease is wanted; nothing means the policy's length. */
  forSeconds: z.int().positive().max(604_800).optional(),
  owner: leaseOwner,
  /** Order inside the team: a higher one comes first, whoever asked before. Other teams are not affected. */
  priority: z.enum(["low", "normal", "high"]).default("normal"),
  /** How many devices this client can map; what asks for more is refused. */
  maxDevices: z.int().min(1).max(64).default(1),
  /** What the program needs of a device, beside what its environment does. */
  needs: deviceNeeds.optional(),
  /** Where this owner's parked memory lies: the lease must be granted there. */
  pinnedGpuId: z.string().optional(),
});
export type LeaseRequestInput = z.input<typeof leaseRequestInput>;

/** Why something waits or was refused: which rule, and what a person can do. */
export const leaseReason = z.strictObject({
  /** The rule that decides. */
  rule: z.enum([
    "amount",
    "gpu-policy",
    "gpu-type",
    "team-limit",
    "person-limit",
    "guaranteed",
    "budget",
    "stopped",
    "calendar",
    "needs",
    "pinned",
    "no-server",
    "reclaim",
    "order",
    "free-device",
    /** Somebody took it out of the queue. */
    "taken-out",
  ]),
  /** One sentence for a person. */
  message: z.string(),
  /** What can be done, in the words of `%gpu`, e.g. `%gpu attach 0.25`. */
  hint: z.string().optional(),
  /** Who holds what, when others' leases are the reason. */
  holders: z
    .array(
      z.strictObject({
        amount: z.string(),
        who: z.string(),
        label: z.string().optional(),
        idleSeconds: z.int().optional(),
      }),
    )
    .optional(),
  /** The GPU type that it is about; decisions of old do not say it. */
  gpuType: z.string().optional(),
  /** The largest amount of that type that would be granted at once, thousandths of a GPU. */
  fitsNowMilli: z.int().optional(),
  /** The largest amount that today's rules could ever grant. */
  largestMilli: z.int().optional(),
});
export type LeaseReason = z.infer<typeof leaseReason>;

/** A lease as its holder sees it. */
export const leaseView = z.strictObject({
  id: z.string(),
  gpuType: z.string(),
  milli: z.int(),
  memoryBytes: z.int(),
  /** The device's name for people, e.g. `soft-0`. */
  deviceName: z.string(),
  gpuId: z.string(),
  serverId: z.string(),
  serverName: z.string(),
  borrowed: z.boolean(),
  /** Asked for with `--guaranteed`: never taken back. */
  guaranteed: z.boolean(),
  grantedAt: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
  /**
   * It will be taken back: told since `at`; from `finishAt` on end what runs; parked and released at `releaseAt`. `why`:
   * another team needs what is guaranteed to it, or (`update`) the GPU server goes out of service, for whatever reason,
   * and what is parked with it.
   */
  notice: z
    .strictObject({
      at: z.iso.datetime(),
      finishAt: z.iso.datetime(),
      releaseAt: z.iso.datetime(),
      why: z.enum(["team", "update"]),
    })
    .nullable(),
  /** Every device of a lease of several GPUs, in the order of their ordinals; each has sessions of its own. */
  devices: z
    .array(
      z.strictObject({
        leaseId: z.string(),
        gpuId: z.string(),
        deviceName: z.string(),
        serverId: z.string(),
        serverName: z.string(),
        milli: z.int(),
        memoryBytes: z.int(),
      }),
    )
    .optional(),
});
export type LeaseView = z.infer<typeof leaseView>;

/** Answer of `POST /v1/lease-requests` and `GET /v1/lease-requests/{id}`. */
export const leaseRequestAnswer = z.discriminatedUnion("state", [
  z.strictObject({ state: z.literal("granted"), requestId: z.string(), lease: leaseView }),
  z.strictObject({
    state: z.literal("queued"),
    requestId: z.string(),
    /** 1 = next. */
    position: z.int(),
    of: z.int(),
    milli: z.int(),
    gpuType: z.string(),
    reason: leaseReason,
    waitedSeconds: z.number(),
    /** Estimate until the grant, when there is a basis for one. */
    likelySeconds: z.number().optional(),
    /** If `likelySeconds` is the time limit of a busy lease: seconds until its idle limit if it is idle from now. */
    soonestSeconds: z.number().optional(),
  }),
  z.strictObject({
    state: z.literal("refused"),
    requestId: z.string(),
    reason: leaseReason,
  }),
  /** Left the queue: cancelled by the client, or its waiting time is over. */
  z.strictObject({ state: z.enum(["cancelled", "expired"]), requestId: z.string(), reason: leaseReason.optional() }),
]);
export type LeaseRequestAnswer = z.infer<typeof leaseRequestAnswer>;

/** `GET /v1/lease-requests/{id}/explanation`: which rule holds a request back, and what would help. */
export const leaseExplanation = z.strictObject({
  requestId: z.string(),
  state: z.enum(["queued", "granted", "refused", "cancelled", "expired"]),
  gpuType: z.string(),
  milli: z.int(),
  teamName: z.string(),
  /** 0 of 0 when it does not wait. */
  position: z.int(),
  of: z.int(),
  waitedSeconds: z.number(),
  /** The moment that it tells of. Of a long queue that may be two seconds ago. */
  asOf: z.iso.datetime(),
  reason: leaseReason.nullable(),
  /** Of other GPU types: what would be granted at once if it were asked for instead; those of which anything would. */
  elsewhere: z.array(z.strictObject({ gpuType: z.string(), fitsNowMilli: z.int() })),
  /** Every rule in the order in which they are tested. `here` is the one that holds it back. */
  rules: z.array(z.strictObject({ rule: z.string(), state: z.enum(["ok", "here", "later"]), message: z.string() })),
  estimate: z
    .strictObject({
      ...{ likelySeconds: z.int(), lowSeconds: z.int(), highSeconds: z.int(), basis: z.string() },
      /** Seconds until the idle limit, if `likelySeconds` is the time limit of a busy lease; else null. */
      soonestSeconds: z.int().nullable(),
    })
    .nullable(),
});
export type LeaseExplanation = z.infer<typeof leaseExplanation>;

/** `POST /v1/leases/{id}/extend`. */
export const extendLeaseInput = z.strictObject({ forSeconds: z.int().positive().max(604_800) });
export type ExtendLeaseInput = z.infer<typeof extendLeaseInput>;
export const extendLeaseAnswer = z.strictObject({ leaseId: z.string(), expiresAt: z.iso.datetime() });
export type ExtendLeaseAnswer = z.infer<typeof extendLeaseAnswer>;

/** `POST /v1/leases/{id}/sessions`: one client process asks for a token bound to its ephemeral key. */
export const openSessionInput = z.strictObject({
  /** Ed25519 public key, base64url without padding (32 bytes). */
  publicKey: z.string().length(43),
  pid: z.int().positive(),
  startTime: z.int().nonnegative(),
});
export type OpenSessionInput = z.infer<typeof openSessionInput>;

export const openSessionAnswer = z.strictObject({
  /** EdDSA JWT, see session-token.ts. */
  token: z.string(),
  sessionId: z.string(),
  /** `tcp://HOST:PORT`, `tls://HOST:PORT` or `unix:///PATH`. */
  address: z.string(),
  /** SHA-256 of the server's TLS certificate, base64url; the client pins it. */
  tlsFingerprint: z.string().nullable(),
  /**
   * GPU types of the pool that are cards with a driver, in order: what a program of machine code can ask for. Said only
   * where this lease is on a software GPU.
   */
  hardwareTypes: z.array(z.string()).optional(),
  lease: leaseView,
});
export type OpenSessionAnswer = z.infer<typeof openSessionAnswer>;

/** Answer of `DELETE /v1/leases/{id}`. */
export const giveBackAnswer = z.strictObject({
  leaseId: z.string(),
  /** Bytes that stay parked in gpuds' host memory for this owner. */
  parkedBytes: z.int(),
  /** What stays parked of each of its GPUs, in the order of the devices: what one server keeps another may not. */
  devices: z.array(z.strictObject({ leaseId: z.string(), parkedBytes: z.int() })),
  heldSeconds: z.number(),
});
export type GiveBackAnswer = z.infer<typeof giveBackAnswer>;

/** Answer of `GET /v1/status`: everything `%gpu` shows. */
export const leaseStatus = z.strictObject({
  /** Of `costMicro`: ISO 4217. */
  currency: z.string(),
  workspace: z.strictObject({
    id: z.string(),
    name: z.string(),
    /** What `%gpu attach` takes when no amount is given, as it is typed: `0.5`, `40G`. */
    defaultAmount: z.string(),
    /** What that comes to in thousandths of a GPU of its type. */
    defaultMilli: z.int(),
    gpuType: z.string(),
    /** `first-use`: the client asks for the default amount by itself when a program first needs a GPU. */
    gpuPolicy: z.enum(["never", "ask", "first-use"]),
  }),
  team: z.strictObject({
    name: z.string(),
    quotas: z.array(
      z.strictObject({
        ...{ gpuType: z.string(), guaranteedMilli: z.int(), limitMilli: z.int(), usedMilli: z.int() },
        /** What of that holds now: less while servers are away, more with a calendar or a reservation. */
        guaranteedNowMilli: z.int(),
      }),
    ),
  }),
  /** For each GPU type: the largest piece that would be granted at once to this team. */
  free: z.array(z.strictObject({ gpuType: z.string(), grantedAtOnceMilli: z.int(), freeMilli: z.int() })),
  leases: z.array(
    z.strictObject({
      lease: leaseView,
      owner: leaseOwner,
      usedMemoryBytes: z.int(),
      gpuTimeUs: z.int(),
      /** Compute used of the lease's own part in the last minute, 0..100. */
      computePercent: z.number(),
      /** GPU hours charged so far, in thousandths. */
      gpuMilliHours: z.int(),
      /** What they cost at today's price, millionths of `currency`; null: its type has no price by the hour. */
      costMicro: z.int().nullable(),
      /** A kernel that has run for a second and more: on the software GPU, which can tell how far it has come. */
      running: runningKernel.nullable(),
      /** When it is parked and released unless its GPU works before; null while gpud cannot tell. */
      idleEndsAt: z.iso.datetime().nullable(),
      /** Of a lease of several GPUs what is used of each, in their order; above are the sums, and the mean per cent. */
      devices: z
        .array(z.strictObject({ leaseId: z.string(), usedMemoryBytes: z.int(), computePercent: z.number() }))
        .optional(),
    }),
  ),
});
export type LeaseStatus = z.infer<typeof leaseStatus>;

/** Answer of `GET /v1/leases/{id}/notice`: what its holder is to be told. */
export const leaseNotice = z.strictObject({
  /** Names this answer: asked with it, the next one comes when there is something else to tell. */
  mark: z.string(),
  /** false: it has ended or is ending, and nothing more will be told. */
  held: z.boolean(),
  notice: leaseView.shape.notice,
  /** The team for whose sake it is taken back. */
  forTeam: z.string().nullable(),
  /** Set while it will soon be parked and released for want of GPU work. */
  idleEndsAt: z.iso.datetime().nullable(),
  usedMemoryBytes: z.int(),
});
export type LeaseNotice = z.infer<typeof leaseNotice>;

/** `PUT /v1/owners`: every kernel of this workspace that is alive. */
export const ownersReport = z.strictObject({ alive: z.array(leaseOwner).max(500) });
export type OwnersReport = z.infer<typeof ownersReport>;
