import { KernelAPI, ServerConnection } from "@jupyterlab/services";
import { z } from "zod";
import { type JupyterServer, onlookerSettings } from "./server-settings.ts";

const TIMEOUT_MS = 4_000;

/** Of a kernel or a terminal, as far as activity goes. */
const seen = z.array(z.object({ last_activity: z.string().optional(), execution_state: z.string().optional() }));

/** When a notebook or terminal of this server last did something; now while a kernel is busy, null when none did. */
export async function lastActivity(server: JupyterServer, now: Date): Promise<Date | null> {
  const settings = onlookerSettings(server, TIMEOUT_MS);
  const [kernels, terminals] = await Promise.all([KernelAPI.listRunning(settings), listTerminals(settings)]);
  const all = [...seen.parse(kernels), ...terminals];
  if (all.some((one) => one.execution_state === "busy")) return now;
  const times = all.flatMap((one) => (one.last_activity === undefined ? [] : Date.parse(one.last_activity)));
  const known = times.filter((at) => Number.isFinite(at));
  return known.length === 0 ? null : new Date(Math.min(now.getTime(), Math.max(...known)));
}

/** The library asks a page of JupyterLab whether there are terminals; the server knows better. */
async function listTerminals(settings: ServerConnection.ISettings): Promise<z.infer<typeof seen>> {
  const response = await ServerConnection.makeRequest(new URL("api/terminals", settings.baseUrl).href, {}, settings);
  if (response.ok) return seen.parse(await response.json());
  await response.body?.cancel();
  return [];
}
