import type { Step } from "#components/ui/steps.tsx";
import type { WorkspaceEvent } from "#server/contracts/workspace.ts";

type Event = Pick<WorkspaceEvent, "step" | "kind" | "message" | "at">;

/** The steps of one start, or of another long work, made from its events in order: each with its times, its last line and its log. */
export function stepsOf(events: readonly Event[]): Step[] {
  const steps = new Map<string, Step & { log: string[] }>();
  for (const event of events) {
    let step = steps.get(event.step);
    if (step === undefined) {
      step = { id: event.step, title: sentence(event.step), state: "running", startedAt: event.at, log: [] };
      steps.set(event.step, step);
    }
    switch (event.kind) {
      case "step-started":
        step.title = event.message || step.title;
        step.state = "running";
        step.startedAt = event.at;
        step.finishedAt = null;
        step.message = null;
        break;
      case "step-done":
        step.state = "done";
        step.message = event.message === step.title ? null : event.message;
        step.finishedAt = event.at;
        break;
      case "step-failed":
        step.state = "failed";
        step.message = event.message;
        step.finishedAt = event.at;
        break;
      case "log":
        step.log.push(event.message);
        if (step.state === "running") step.message = event.message;
        break;
    }
  }
  return [...steps.values()];
}

/** `sandbox` → `Sandbox`. */
function sentence(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1).replaceAll("-", " ");
}
