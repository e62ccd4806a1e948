/** Datasets: files that an admin or a team lead has registered, and that workspaces mount at `~/datasets/<name>`. */
import { z } from "zod";
import { datasetId, editedVersion, instant, teamId, userId, version, workspaceId } from "./common.ts";
import { typedWord } from "./typed-name.ts";

export const datasetName = typedWord({
  max: 40,
  also: "._-",
  sentence:
    "A name is a short lower-case word, which becomes the folder's: letters a to z, digits, dots, dashes and _.",
});

const absolutePath = z
  .string()
  .trim()
  .max(4096)
  .regex(/^\/[^\0]*$/, "A path begins with /.")
  .refine((path) => !path.split("/").includes(".."), "A path without .. is needed.");

const dnsName = z
  .string()
  .trim()
  .max(253)
  .regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/, "A name of lower-case letters, digits, dots and dashes is needed.");

/** Where the files lie. Passwords and keys have no place in it: a secret of the cluster is named. */
export const datasetSource = z.discriminatedUnion("kind", [
  /** A folder of the machine on which the launcher `local` runs. */
  z.strictObject({ kind: z.literal("folder"), path: absolutePath }),
  z.strictObject({
    kind: z.literal("nfs"),
    server: z
      .string()
      .trim()
      .max(253)
      .regex(/^[A-Za-z0-9]([A-Za-z0-9.:-]*[A-Za-z0-9])?$/, "A host name or an address is needed."),
    path: absolutePath,
  }),
  /** A bucket by a CSI driver of the cluster. */
  z.strictObject({
    kind: z.literal("s3"),
    /** e.g. `s3.csi.aws.com`. */
    driver: dnsName,
    /** What the driver wants to know, e.g. `bucketName`; no keys or passwords. */
    attributes: z
      .record(z.string().min(1).max(100), z.string().max(1000))
      .refine((attributes) => Object.keys(attributes).length <= 32, "At most 32 attributes."),
    /** The driver's mount options, e.g. `allow-other`, `uid=1000`. */
    mountOptions: z.array(z.string().trim().min(1).max(200)).max(16).default([]),
    /** The cluster's secret with the bucket's keys. */
    secret: z.strictObject({ namespace: dnsName, name: dnsName }).optional(),
  }),
  /** A claim in the namespace of each team that uses it. */
  z.strictObject({
    kind: z.literal("volume"),
    claim: dnsName.refine((name) => !name.startsWith("ws-"), "Claims that begin with ws- are homes of workspaces."),
  }),
]);
export type DatasetSource = z.infer<typeof datasetSource>;
export const datasetKind = z.enum(["folder", "nfs", "s3", "volume"]);
export type DatasetKind = z.infer<typeof datasetKind>;

/** Bytes that a person has told. */
const toldBytes = z.int().min(0).max(Number.MAX_SAFE_INTEGER);

export const datasetView = z.strictObject({
  id: datasetId,
  name: z.string(),
  description: z.string(),
  /** Whose it is; null: everybody's. */
  team: z.strictObject({ id: teamId, name: z.string() }).nullable(),
  kind: datasetKind,
  /** Where the files lie, for those who may change it; null for others. */
  source: datasetSource.nullable(),
  writable: z.boolean(),
  /** Read into the node's cache when a workspace starts: a folder by its machine, what a cluster mounts by the workspace. */
  prefetch: z.boolean(),
  /** Measured by the server when it is a folder, else told by whoever registered it; null: not known yet. */
  sizeBytes: z.int().nullable(),
  fileCount: z.int().nullable(),
  /** When the server measured it last; null: not yet, or it cannot. */
  measuredAt: instant.nullable(),
  /** Why that did not go well. */
  measureMessage: z.string().nullable(),
  /** Workspaces that mount it, whoever's they are. */
  workspaces: z.int(),
  /** Those of them that run, and into whose node's cache all of it was read at their start. */
  inMemoryFor: z.int(),
  registeredBy: z.strictObject({ id: userId, name: z.string() }).nullable(),
  createdAt: instant,
  version,
  /** Whether whoever asks may edit and remove it. */
  canChange: z.boolean(),
});
export type DatasetView = z.infer<typeof datasetView>;
export const datasetList = z.strictObject({ datasets: z.array(datasetView) });
export type DatasetList = z.infer<typeof datasetList>;

export const registerDatasetInput = z.strictObject({
  name: datasetName,
  description: z.string().trim().max(1000).default(""),
  /** Left out: everybody's, which is for an admin to decide. */
  teamId: teamId.optional(),
  source: datasetSource,
  writable: z.boolean().default(false),
  prefetch: z.boolean().default(true),
  /** Of what the server cannot measure. */
  sizeBytes: toldBytes.nullable().default(null),
});
export type RegisterDatasetInput = z.input<typeof registerDatasetInput>;

/** Where it lies, whose it is and whether it may be written to stay: for others, another one is registered. */
export const editDatasetInput = z.strictObject({
  id: datasetId,
  description: z.string().trim().max(1000),
  prefetch: z.boolean(),
  /** Of a folder it is measured: left out there. */
  sizeBytes: toldBytes.nullable().optional(),
  version: editedVersion,
});
export type EditDatasetInput = z.input<typeof editDatasetInput>;

export const datasetInput = z.strictObject({ id: datasetId });
export type DatasetInput = z.input<typeof datasetInput>;

/** A dataset of one workspace. */
export const workspaceDataset = z.strictObject({
  id: datasetId,
  name: z.string(),
  description: z.string(),
  kind: datasetKind,
  writable: z.boolean(),
  sizeBytes: z.int().nullable(),
  /** Where notebooks find it, e.g. `~/datasets/imagenet`. */
  path: z.string(),
  /**
   * How far it has come into the cache of the workspace's node since the last start; null: nothing is read ahead.
   * `interrupted`: whoever read has fallen silent. `missing`: there were no files, and the workspace started without.
   */
  prefetch: z
    .strictObject({
      state: z.enum(["reading", "done", "partly", "failed", "interrupted", "missing"]),
      bytes: z.int(),
      /** null while it is counted. */
      totalBytes: z.int().nullable(),
      message: z.string().nullable(),
    })
    .nullable(),
});
export type WorkspaceDataset = z.infer<typeof workspaceDataset>;
export const workspaceDatasetList = z.strictObject({
  datasets: z.array(workspaceDataset),
  /** What an edit of which they are was made on. */
  version,
});
export type WorkspaceDatasetList = z.infer<typeof workspaceDatasetList>;

/** Ids of datasets for a workspace: each once, and no two of one name. */
export const chosenDatasets = z.array(datasetId).max(20, "A workspace mounts at most 20 datasets.");

/** Takes effect at the next start of the workspace. */
export const chooseDatasetsInput = z.strictObject({
  id: workspaceId,
  datasets: chosenDatasets,
  version: editedVersion,
});
export type ChooseDatasetsInput = z.input<typeof chooseDatasetsInput>;
