import { State, type Tone } from "#components/ui/state.tsx";
import type { WorkspaceView } from "#server/contracts/workspace.ts";

type Observed = Pick<WorkspaceView, "desired" | "observed">;

/** The word for where a workspace is on its way, and its tone. */
export function describeState({ desired, observed }: Observed): { tone: Tone; word: string } {
  if (desired === "removed") return { tone: "busy", word: "removing" };
  switch (observed) {
    case "running":
      return desired === "stopped" ? { tone: "busy", word: "stopping" } : { tone: "ok", word: "running" };
    case "failed":
      return { tone: "bad", word: "failed" };
    case "stopped":
    case "removed":
      return desired === "running" ? { tone: "busy", word: "starting" } : { tone: "idle", word: "stopped" };
    case "stopping":
      return { tone: "busy", word: "stopping" };
    case "starting":
    case "pending":
      return desired === "stopped" ? { tone: "busy", word: "stopping" } : { tone: "busy", word: "starting" };
  }
}

export function WorkspaceState({ workspace }: { workspace: Observed }) {
  const { tone, word } = describeState(workspace);
  return <State tone={tone}>{word}</State>;
}
