import { describe, expect, it } from "vitest";
import type { WorkspaceEvent } from "#server/contracts/workspace.ts";
import { stepsOf } from "./event-steps.ts";

let seq = 0;
function event(kind: WorkspaceEvent["kind"], step: string, message: string, second: number): WorkspaceEvent {
  seq += 1;
  return { seq, generation: 1, at: `2026-11-21T10:00:${String(second).padStart(2, "0")}.000Z`, kind, step, message };
}

describe("the steps of a start", () => {
  it("keeps their order, times, last line and log", () => {
    const steps = stepsOf([
      event("step-started", "sandbox", "Make the sandbox", 0),
      event("step-done", "sandbox", "Make the sandbox", 1),
      event("step-started", "jupyter", "Start JupyterLab", 1),
      event("log", "jupyter", "listening", 2),
    ]);
    expect(steps.map(({ title, state }) => [title, state])).toEqual([
      ["Make the sandbox", "done"],
      ["Start JupyterLab", "running"],
    ]);
    expect(steps[0]).toMatchObject({
      startedAt: "2026-11-21T10:00:00.000Z",
      finishedAt: "2026-11-21T10:00:01.000Z",
      message: null,
    });
    expect(steps[1]).toMatchObject({ message: "listening", log: ["listening"] });
  });

  it("shows why a step failed, also when lines follow", () => {
    const [step] = stepsOf([
      event("step-started", "environment", "Build the environment", 0),
      event("step-failed", "environment", "No space left on the disk.", 4),
      event("log", "environment", "cleaning up", 5),
    ]);
    expect(step).toMatchObject({ state: "failed", message: "No space left on the disk.", log: ["cleaning up"] });
  });

  it("begins a step anew when it is tried again", () => {
    const [step] = stepsOf([
      event("step-started", "jupyter", "Start JupyterLab", 0),
      event("step-failed", "jupyter", "The port was taken.", 3),
      event("step-started", "jupyter", "Start JupyterLab", 5),
    ]);
    expect(step).toMatchObject({
      state: "running",
      startedAt: "2026-11-21T10:00:05.000Z",
      finishedAt: null,
      message: null,
    });
  });

  it("shows each restart of a workspace once, over and not failed", () => {
    const restarts = [event("step-done", "kernel", "A notebook kernel computed 6 * 7", 0)];
    for (const second of [10, 40]) {
      restarts.push(event("step-started", `restart-${second}`, "Ran out of memory and was started again", second));
      restarts.push(event("step-done", `restart-${second}`, "It needed more memory.", second));
    }
    const [, ...again] = stepsOf(restarts);
    const over = { title: "Ran out of memory and was started again", state: "done", message: "It needed more memory." };
    expect(again).toMatchObject([over, over]);
    expect(again.map(({ startedAt, finishedAt }) => startedAt === finishedAt)).toEqual([true, true]);
  });

  it("takes a step that only logged as running", () => {
    expect(stepsOf([event("log", "kernel-start", "hello", 0)])[0]).toMatchObject({
      title: "Kernel start",
      state: "running",
    });
  });
});
