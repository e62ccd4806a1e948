/** Workspaces. */
import { z } from "zod";
import {
  editedVersion,
  gpuType,
  idOf,
  instant,
  LARGEST_COUNT,
  leaseId,
  milli,
  oneTimeCode,
  pageSize,
  searchText,
  sessionId,
  teamId,
  userId,
  version,
  workspaceId,
} from "./common.ts";
import { chosenDatasets } from "./dataset.ts";
import { typedAmount } from "./typed-amount.ts";
import { typedName } from "./typed-name.ts";
import { chosenSize, workspaceSize } from "./workspace-size.ts";

export const workspaceName = typedName({
  max: 60,
  also: " ._-",
  sentence: "A name starts with a letter or digit; spaces, dots, dashes and _ may follow.",
});

/**
 * How a workspace comes to a GPU: `never`, `ask` (somebody runs `%gpu attach`), or `first-use` (the first GPU work
 * attaches the default amount by itself).
 */
export const gpuPolicy = z.enum(["never", "ask", "first-use"]);
export type GpuPolicy = z.infer<typeof gpuPolicy>;

export const workspaceView = z.strictObject({
  id: workspaceId,
  name: z.string(),
  owner: z.strictObject({ id: userId, name: z.string() }),
  team: z.strictObject({ id: teamId, name: z.string() }),
  /** What whoever asks is there; null: a lead or an admin, who answers for it. */
  role: z.enum(["owner", "editor", "viewer"]).nullable(),
  image: z.strictObject({ id: idOf("img"), name: z.string(), title: z.string(), version: z.string() }),
  /** A newer version of its environment that its team gets; null: it has the newest. */
  update: z.strictObject({ id: idOf("imv"), version: z.string() }).nullable(),
  launcher: z.string(),
  /** Null: what its launcher gives to all. */
  size: workspaceSize.nullable(),
  /** What `%gpu attach` takes when no amount is given, as it is typed there: `0.5`, `2`, `40G`. */
  defaultAmount: z.string(),
  gpuType: z.string(),
  gpuPolicy,
  /** What people want. */
  desired: z.enum(["running", "stopped", "removed"]),
  /** What the reconciler has seen. */
  observed: z.enum(["pending", "starting", "running", "stopping", "stopped", "failed", "removed"]),
  /** A sentence for a person when it failed. */
  message: z.string().nullable(),
  generation: z.int(),
  createdAt: instant,
  startedAt: instant.nullable(),
  stoppedAt: instant.nullable(),
  lastActivityAt: instant.nullable(),
  /** Thousandths of a core in the last half minute, and the memory of its processes; null when it does not run. */
  cpuMilli: z.int().nullable(),
  memoryBytes: z.int().nullable(),
  /** It stops after so long without activity; null: never. */
  idleSeconds: z.int().nullable(),
  /** The limit that its owner has set; null follows the team. */
  ownIdleSeconds: z.int().nullable(),
  /** When that will be, as things stand; null when it does not run or is never stopped. */
  stopsAt: instant.nullable(),
  /** When it is started again on another machine, because the one that it runs on is being emptied. */
  movesAt: instant.nullable(),
  /** Days for which its files are kept when it is removed; 0: they are deleted at once. */
  filesKeptDays: z.int(),
  /** Leases that have not ended. */
  leases: z.array(
    z.strictObject({
      id: leaseId,
      gpuType: z.string(),
      milli,
      deviceName: z.string(),
      serverName: z.string(),
      label: z.string().nullable(),
      state: z.enum(["granted", "active", "unreachable", "ending"]),
      grantedAt: instant,
      expiresAt: instant,
      /** When it is released unless its GPU works before; null while its server cannot tell. */
      idleEndsAt: instant.nullable(),
      /** When it is taken back: its holder has been told; null: it stays. */
      releaseAt: instant.nullable(),
    }),
  ),
  /** What an edit of each setting was made on. */
  versions: z.strictObject({ gpuPolicy: version, idleLimit: version, size: version }),
  /** What the one who asks may do. */
  can: z.strictObject({
    open: z.boolean(),
    start: z.boolean(),
    stop: z.boolean(),
    restart: z.boolean(),
    duplicate: z.boolean(),
    /** Its notebooks and files, and a later stop: the owner's and editors'. */
    work: z.boolean(),
    /** Settings, variables, and inviting others: the owner's alone. */
    change: z.boolean(),
    /** Taking a collaborator out. */
    unshare: z.boolean(),
    remove: z.boolean(),
  }),
});
export type WorkspaceView = z.infer<typeof workspaceView>;

export const listWorkspacesInput = z.strictObject({
  /** `mine` (default), `shared` with the one who asks, `others` of the teams that they lead, or all of them. */
  scope: z.enum(["mine", "shared", "others", "all"]).default("mine"),
  teamId: teamId.optional(),
  /** Words, each in the name of the workspace, its owner, its team or its environment. */
  search: searchText.optional(),
  state: z.enum(["running", "stopped", "failed"]).optional(),
  limit: pageSize(100),
  /** The last workspace of the page before. */
  after: workspaceId.optional(),
});
export type ListWorkspacesInput = z.input<typeof listWorkspacesInput>;
export const workspaceList = z.strictObject({
  workspaces: z.array(workspaceView),
  /** All that match, on whichever page. */
  total: z.int(),
  /** What `after` is for the next page; null: this is the last. */
  next: workspaceId.nullable(),
});
export type WorkspaceList = z.infer<typeof workspaceList>;

export const createWorkspaceInput = z.strictObject({
  name: workspaceName,
  /** The environment's word, e.g. `cuda-python`. */
  image: z.string().min(1).max(60),
  /** One of the environment's versions that the team gets; left out: the newest of them. */
  versionId: idOf("imv").optional(),
  /** May be left out by somebody who belongs to one team only. */
  teamId: teamId.optional(),
  /** Left out: the default size. */
  size: chosenSize.optional(),
  /** What `%gpu attach` takes when no amount is given: `0.5` (of a GPU), `2` (GPUs), `40G` (GPU memory). */
  defaultAmount: typedAmount.default("0.5"),
  gpuType: gpuType.default("soft"),
  gpuPolicy: gpuPolicy.default("ask"),
  /** Mounted at `~/datasets/<name>`: everybody's, or the team's. */
  datasets: chosenDatasets.default([]),
});
export type CreateWorkspaceInput = z.input<typeof createWorkspaceInput>;

export const workspaceInput = z.strictObject({ id: workspaceId });
export type WorkspaceInput = z.input<typeof workspaceInput>;

export const renameWorkspaceInput = z.strictObject({ id: workspaceId, name: workspaceName });
export type RenameWorkspaceInput = z.input<typeof renameWorkspaceInput>;

export const removedWorkspace = z.strictObject({
  id: workspaceId,
  name: z.string(),
  owner: z.strictObject({ id: userId, name: z.string() }),
  team: z.strictObject({ id: teamId, name: z.string() }),
  image: z.strictObject({ name: z.string(), title: z.string() }),
  /** When its files are deleted. */
  filesKeptUntil: instant,
});
export type RemovedWorkspace = z.infer<typeof removedWorkspace>;
/** The first 200, sorted by `filesKeptUntil`. */
export const removedWorkspaceList = z.strictObject({ workspaces: z.array(removedWorkspace), total: z.int() });
export type RemovedWorkspaceList = z.infer<typeof removedWorkspaceList>;

/** `name`: another name, where the old one is in use by now. */
export const restoreWorkspaceInput = z.strictObject({ id: workspaceId, name: workspaceName.optional() });
export type RestoreWorkspaceInput = z.input<typeof restoreWorkspaceInput>;

/** The same environment, amounts, limits, variables and datasets once more, without the files. */
export const duplicateWorkspaceInput = z.strictObject({ id: workspaceId, name: workspaceName });
export type DuplicateWorkspaceInput = z.input<typeof duplicateWorkspaceInput>;

/** The version that is offered: the next start has it, and what runs is restarted with it. */
export const updateWorkspaceInput = z.strictObject({ id: workspaceId, versionId: idOf("imv") });
export type UpdateWorkspaceInput = z.input<typeof updateWorkspaceInput>;

/** Not stopped for being idle until then. */
export const extendWorkspaceInput = z.strictObject({ id: workspaceId, forSeconds: z.int().min(60).max(604_800) });
export type ExtendWorkspaceInput = z.input<typeof extendWorkspaceInput>;

/** `null` follows the team; more than the team's is refused. */
export const setIdleLimitInput = z.strictObject({
  id: workspaceId,
  idleSeconds: z.int().min(300).max(31_536_000).nullable(),
  version: editedVersion,
});
export type SetIdleLimitInput = z.input<typeof setIdleLimitInput>;

export const setGpuPolicyInput = z.strictObject({
  id: workspaceId,
  gpuPolicy,
  /** What `%gpu attach` takes when no amount is given, and what the first use attaches. */
  defaultAmount: typedAmount,
  version: editedVersion,
});
export type SetGpuPolicyInput = z.input<typeof setGpuPolicyInput>;

export const workspaceSamplesInput = z.strictObject({
  id: workspaceId,
  /** The stretch that ends now; samples are kept for a day. */
  minutes: z.coerce.number().int().min(5).max(1440).default(60),
  /** `csv` answers the stretches as a file. */
  format: z.enum(["json", "csv"]).default("json"),
});
export type WorkspaceSamplesInput = z.input<typeof workspaceSamplesInput>;
export const workspaceSamples = z.strictObject({
  from: instant,
  to: instant,
  /** Oldest first, at most 240: each the mean of its stretch. */
  samples: z.array(z.strictObject({ at: instant, cpuMilli: z.int(), memoryBytes: z.int() })),
  /**
   * The same stretches, those in which a GPU was held: thousandths of a GPU in the mean of the stretch, those of them
   * that kernels computed on (GPU time), and device memory as last measured in it.
   */
  gpu: z.array(z.strictObject({ at: instant, heldMilli: z.int(), usedMilli: z.int(), memoryBytes: z.int() })),
});
export type WorkspaceSamples = z.infer<typeof workspaceSamples>;

/** A way into the running workspace: a one-time code on its own hostname. */
export const handoverOutput = z.strictObject({ url: z.url(), expiresAt: instant });
export type HandoverOutput = z.infer<typeof handoverOutput>;

/** What the gateway trades: the code that came with the browser, on this workspace's hostname. */
export const redeemHandoverInput = z.strictObject({ code: oneTimeCode, workspaceId });
export type RedeemHandoverInput = z.input<typeof redeemHandoverInput>;
export const redeemHandoverOutput = z.strictObject({ userId, sessionId, workspaceId });
export type RedeemHandoverOutput = z.infer<typeof redeemHandoverOutput>;

export const workspaceEvent = z.strictObject({
  seq: z.int(),
  /** Which start of the workspace it belongs to. */
  generation: z.int(),
  at: instant,
  kind: z.enum(["step-started", "step-done", "step-failed", "log"]),
  step: z.string(),
  message: z.string(),
});
export type WorkspaceEvent = z.infer<typeof workspaceEvent>;
export const workspaceEventsInput = z.strictObject({
  id: workspaceId,
  /** Only events after this sequence number; without it the end of the log, and the steps before it. */
  after: z.coerce.number().int().min(0).optional(),
  /** Only those of this start. */
  generation: z.coerce.number().int().min(1).max(LARGEST_COUNT).optional(),
  limit: z.coerce.number().int().min(1).max(2000).default(500),
});
export type WorkspaceEventsInput = z.input<typeof workspaceEventsInput>;
export const followEventsInput = workspaceEventsInput.extend({
  /** Present: a stream of server-sent events that goes on. */
  follow: z.string().optional(),
});
export const workspaceEventList = z.strictObject({ events: z.array(workspaceEvent) });
export type WorkspaceEventList = z.infer<typeof workspaceEventList>;
