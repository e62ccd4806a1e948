/** `handle.json` of a local workspace: finds its processes again after a restart of the broker. */
import { readFile } from "node:fs/promises";
import { z } from "zod";
import type { WorkspacePaths } from "./workspace-files.ts";

/** A new field needs a default: this version must find and end workspaces that an older version started. */
const handleSchema = z.object({
  launcher: z.literal("local"),
  generation: z.int(),
  /** The sandbox's first process; when it ends, the kernel ends all others in it. */
  pid: z.int().positive(),
  startTime: z.int(),
  /** The Unix socket that its Jupyter server listens on, on the host. */
  socket: z.string().default(""),
  isolated: z.boolean(),
  /** Undefined for a workspace that an older version started: no limit is enforced. */
  limits: z
    .object({
      memoryBytes: z.number(),
      tasks: z.number(),
      /** File systems in memory, by device number. */
      memoryFileSystems: z.record(z.string(), z.number()),
    })
    .optional(),
  /** Control group that holds the workspace to its limits; without one the limit watch does. */
  group: z.string().optional(),
  /** The environment's folder, which must stay while the workspace runs; older handles do not name the folder. */
  environment: z.string().default(""),
});
export type LocalHandle = z.infer<typeof handleSchema>;

/** Only a missing file means that nothing runs. A file that cannot be read may stand for running processes. */
export async function readHandle(paths: WorkspacePaths): Promise<LocalHandle | undefined> {
  try {
    return handleSchema.parse(JSON.parse(await readFile(paths.handle, "utf8")));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw new Error(`Whether the workspace runs is unknown: ${paths.handle} cannot be read.`, { cause: error });
  }
}

/** Whether an older version started the workspace, on a TCP port of the host. Such a workspace can only be ended. */
export function isFromBefore({ socket }: LocalHandle): boolean {
  return socket === "";
}
