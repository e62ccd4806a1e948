import { KernelAPI, SessionAPI } from "@jupyterlab/services";
import { z } from "zod";
import { type JupyterServer, onlookerSettings } from "./server-settings.ts";

const TIMEOUT_MS = 5_000;

/** Kernels that are listed, and characters of a path: a hostile server names any number, all with one long path. */
const MOST_KERNELS = 200;
const LONGEST_PATH = 1_024;

const kernelModels = z.array(
  z.object({
    id: z.string().max(100),
    name: z.string().transform((name) => name.slice(0, 100)),
    execution_state: z.string().optional(),
    last_activity: z.string().optional(),
    connections: z.number().optional(),
  }),
);
export type RunningKernel = z.infer<typeof kernelModels>[number] & { path: string | null };

/** The kernels of a server, with the notebook or console that each runs for; at most `MOST_KERNELS`. */
export async function listKernels(server: JupyterServer): Promise<RunningKernel[]> {
  const settings = onlookerSettings(server, TIMEOUT_MS);
  const [kernels, sessions] = await Promise.all([KernelAPI.listRunning(settings), SessionAPI.listRunning(settings)]);
  const paths = new Map(sessions.map((session) => [session.kernel?.id, session.path]));
  const byId = new Map(kernelModels.parse(kernels.slice(0, MOST_KERNELS)).map((kernel) => [kernel.id, kernel]));
  return [...byId.values()].map((kernel) => ({
    ...kernel,
    path: paths.get(kernel.id)?.slice(0, LONGEST_PATH) ?? null,
  }));
}

/** Stops what a kernel computes; its variables stay. */
export async function interruptKernel(server: JupyterServer, kernelId: string): Promise<void> {
  await KernelAPI.interruptKernel(kernelId, onlookerSettings(server, TIMEOUT_MS));
}

/** Ends a kernel; one that is gone already is no error. A kernel that is busy gets some seconds to leave. */
export async function shutDownKernel(server: JupyterServer, kernelId: string): Promise<void> {
  await KernelAPI.shutdownKernel(kernelId, onlookerSettings(server, 15_000));
}
