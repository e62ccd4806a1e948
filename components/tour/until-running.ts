import { api } from "#components/api.ts";
import type { WorkspaceView } from "#server/contracts/workspace.ts";

/** Comes back when the workspace runs; `step` hears how far it is. Throws a sentence when it cannot be started. */
export async function untilRunning(id: string, step: (text: string) => void, signal: AbortSignal): Promise<void> {
  const stream = new EventSource("/api/v1/live?topics=workspace");
  try {
    await new Promise<void>((resolve, reject) => {
      const look = async () => {
        const seen = await api<WorkspaceView>("GET", `/workspaces/${id}`);
        if (!seen.ok) throw new Error(seen.error.message);
        const { observed, desired, message } = seen.data;
        if (observed === "failed") throw new Error(message ?? "The workspace could not be started.");
        if (observed === "running" && desired === "running") resolve();
        else step(observed === "starting" ? "Starting JupyterLab" : "Launching a workspace");
      };
      const lookAgain = () => void look().catch(reject);
      // What happened before it was open, or while it was lost, was not heard.
      stream.onopen = lookAgain;
      stream.onmessage = (event: MessageEvent<string>) => {
        const changed = (JSON.parse(event.data) as { id: string | null }).id;
        if (changed === null || changed === id) lookAgain();
      };
      stream.onerror = () => {
        if (stream.readyState === EventSource.CLOSED)
          reject(new Error("The portal does not tell how far it is. Try again."));
      };
      signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
    });
  } finally {
    stream.close();
  }
}
