import { setTimeout } from "node:timers/promises";
import { ServerConnection } from "@jupyterlab/services";
import { z } from "zod";
import { LARGER_THAN_MEMORY, UNREADABLE_FILES } from "#server/launchers/cache-words.ts";
import type { DatasetMount, Prefetched } from "#server/launchers/launcher.ts";
import { insideLayout } from "#server/launchers/layout.ts";
import { type JupyterServer, onlookerSettings, readShort } from "./server-settings.ts";

const TIMEOUT_MS = 4_000;
const ASK_EVERY_MS = 1_000;
/** A server that computes may not answer at once: so many questions in a row are asked in vain. */
const MOST_UNANSWERED = 10;

const bytes = z.int().min(0);
/** The workspace's own word, from a server that is its user's. */
const answered = z.object({
  state: z.enum(["reading", "unwanted", "done", "partly", "failed", "missing"]),
  bytes,
  totalBytes: bytes.nullable(),
  lacks: z.enum(["memory", "files"]).nullable(),
});

/**
 * Has a workspace's own server read a dataset that it mounts, where its launcher has no way to the files, and tells how
 * far it has come until `tell` answers false: then it asks no more, and the server stops by itself. Undefined when
 * nothing is to be read, or the workspace's package is older than that question.
 */
export async function readAheadWithin(
  server: JupyterServer,
  dataset: DatasetMount,
  tell: (so: Prefetched) => boolean,
  signal: AbortSignal,
): Promise<Prefetched | undefined> {
  if (!dataset.prefetch) return undefined;
  const folder = `${insideLayout.datasets}/${dataset.name}`;
  let unanswered = 0;
  while (!signal.aborted) {
    const response = await ask(server, folder).catch((error: unknown) => {
      unanswered += 1;
      if (unanswered > MOST_UNANSWERED) throw error;
    });
    if (response !== undefined) {
      unanswered = 0;
      const so = await readAnswer(response);
      if (so?.state !== "reading" || !tell(so)) return so;
    }
    await setTimeout(ASK_EVERY_MS, undefined, { signal }).catch(() => undefined);
  }
  return undefined;
}

async function ask(server: JupyterServer, folder: string): Promise<Response> {
  const settings = onlookerSettings(server, TIMEOUT_MS);
  const asked = { method: "POST", body: JSON.stringify({ folder }) };
  return await ServerConnection.makeRequest(new URL("sluice-gpu/datasets", settings.baseUrl).href, asked, settings);
}

async function readAnswer(response: Response): Promise<Prefetched | undefined> {
  if (!response.ok) {
    await response.body?.cancel();
    return undefined;
  }
  const { state, bytes, totalBytes, lacks } = answered.parse(JSON.parse(await readShort(response)));
  // It stopped a moment before it was asked again, and goes on.
  if (state === "unwanted") return { state: "reading", bytes, totalBytes, message: null };
  return { state, bytes, totalBytes, message: messageOf(state, lacks) };
}

function messageOf(state: z.infer<typeof answered>["state"], lacks: z.infer<typeof answered>["lacks"]): string | null {
  if (state === "missing") return "It is not mounted: the log of the start says why.";
  if (state === "failed") return "Its folder cannot be read.";
  if (state !== "partly") return null;
  return lacks === "memory" ? LARGER_THAN_MEMORY : UNREADABLE_FILES;
}
