/** `handle.json` of a local workspace: finds its processes again after a restart of the broker. */
import { readFile } from "node:fs/promises";
import { z } from "zod";
import type { WorkspacePaths } from "./workspace-files.ts";

/** A field added later needs a default: what an older version started must be found and ended by this one. */
const handleSchema = z.object({
  launcher: z.literal("local"),
  generation: z.int(),
  /** The sandbox's first process; when it ends, the kernel ends all others in it. */
  pid: z.int().positive(),
  startTime: z.int(),
  /** The Unix socket that its Jupyter server listens on, on the host. */
  socket: z.string().default(""),
  isolated: z.boolean(),
  /** Undefined for what an older version started: no limit holds for it. */
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
  /** The environment's folder, which must stay while this runs; older handles do not name it. */
  environment: z.string().default(""),
});
export type LocalHandle = z.infer<typeof handleSchema>;

/** Only a missing file means that nothing runs; one that cannot be understood may stand for processes that do. */
export async function readHandle(paths: WorkspacePaths): Promise<LocalHandle | undefined> {
  try {
    return handleSchema.parse(JSON.parse(await readFile(paths.handle, "utf8")));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw new Error(`Whether the workspace runs is unknown: ${paths.handle} cannot be read.`, { cause: error });
  }
}

/** Started by a version that had its servers listen on TCP ports of the host; it is found only to be ended. */
export function isFromBefore({ socket }: LocalHandle): boolean {
  return socket === "";
}
