import { ServerConnection } from "@jupyterlab/services";
import { z } from "zod";
import { type JupyterServer, onlookerSettings, readShort } from "./server-settings.ts";

const TIMEOUT_MS = 4_000;

/** The workspace's own word, from a server that is its user's: what cannot be is none. */
const answered = z.object({
  cpuMs: z.int().min(0),
  memoryBytes: z
    .int()
    .min(0)
    .max(2 ** 46),
});

/**
 * Processor time so far (ms) and memory now of a workspace's processes, as its server sees them in its container;
 * undefined where its package is older than that question.
 */
export async function usageWithin(server: JupyterServer): Promise<z.infer<typeof answered> | undefined> {
  const settings = onlookerSettings(server, TIMEOUT_MS);
  const response = await ServerConnection.makeRequest(new URL("sluice-gpu/usage", settings.baseUrl).href, {}, settings);
  if (response.ok) return answered.parse(JSON.parse(await readShort(response)));
  await response.body?.cancel();
  return undefined;
}
