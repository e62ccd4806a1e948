/** A person at the portal: launches, and follows what becomes of it as the page of workspaces does. */
import type { WorkspaceList, WorkspaceView } from "#server/contracts/workspace.ts";

const API = "/api/v1";

type Waiting = { resolve: () => void; reject: (error: Error) => void };

/** Opens the portal at `url` with a session's cookie. */
export async function openBrowser(url: string, cookie: string) {
  const closed = new AbortController();
  const ask = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const headers = { cookie, origin: url, "content-type": "application/json" };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    const answer = await fetch(`${url}${API}${path}`, { method, headers, ...sent });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as T;
  };

  const waiting = new Map<string, Waiting>();
  let [again, looking] = [false, false];
  /** Reads the list; changes that are told meanwhile have it read once more. */
  const look = async () => {
    again = true;
    if (looking) return;
    looking = true;
    try {
      while (again && waiting.size > 0) {
        again = false;
        const { workspaces } = await ask<WorkspaceList>("GET", "/workspaces?limit=100");
        for (const { id, observed, message } of workspaces) {
          if (observed === "running") waiting.get(id)?.resolve();
          else if (observed === "failed") waiting.get(id)?.reject(new Error(message ?? "The launch failed."));
          else continue;
          waiting.delete(id);
        }
      }
    } finally {
      looking = false;
    }
  };
  const fail = (error: unknown) => {
    for (const { reject } of waiting.values()) reject(error instanceof Error ? error : new Error(String(error)));
  };
  const stream = await fetch(`${url}${API}/live?topics=workspace`, { headers: { cookie }, signal: closed.signal });
  const hear = async () => {
    for await (const chunk of stream.body?.pipeThrough(new TextDecoderStream()) ?? [])
      if (chunk.includes("data:")) void look().catch(fail);
  };
  void hear().catch(fail);

  return {
    /** Clicks Launch; gives the workspace's id. */
    launch: async (name: string): Promise<string> =>
      (await ask<WorkspaceView>("POST", "/workspaces", { name, image: "cuda-python" })).id,
    /** Settles when the portal says that it runs: its first kernel has computed. */
    untilRunning: async (id: string): Promise<void> => {
      const settled = new Promise<void>((resolve, reject) => waiting.set(id, { resolve, reject }));
      void look().catch(fail);
      await settled;
    },
    /** How many of one's workspaces are so. */
    count: async (state: "running" | "failed"): Promise<number> =>
      (await ask<WorkspaceList>("GET", `/workspaces?state=${state}&limit=1`)).total,
    close: () => closed.abort(),
  };
}
export type Browser = Awaited<ReturnType<typeof openBrowser>>;
