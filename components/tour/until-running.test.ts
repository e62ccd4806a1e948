import { afterEach, expect, it, vi } from "vitest";
import { untilRunning } from "./until-running.ts";

class Stream {
  static readonly CLOSED = 2;
  static last: Stream;
  readyState = 1;
  onopen = () => undefined;
  onerror = () => undefined;
  onmessage: (event: { data: string }) => void = () => undefined;
  constructor() {
    Stream.last = this;
  }
  changed(id: string | null) {
    this.onmessage({ data: JSON.stringify({ topic: "workspace", id }) });
  }
  close() {
    this.readyState = Stream.CLOSED;
  }
}

const views: object[] = [];
const asked = vi.fn(() => Promise.resolve(Response.json(views.shift())));
afterEach(() => {
  vi.unstubAllGlobals();
  asked.mockClear();
});

function wait() {
  vi.stubGlobal("EventSource", Stream);
  vi.stubGlobal("fetch", asked);
  const steps: string[] = [];
  const control = new AbortController();
  const running = untilRunning("ws-1", (text) => steps.push(text), control.signal);
  return { running, steps, control, stream: Stream.last };
}
const settled = () => new Promise((resolve) => setTimeout(resolve, 5));

it("looks at the workspace when it is told of it, and at no other time", async () => {
  views.push({ observed: "pending", desired: "running" }, { observed: "starting", desired: "running" });
  views.push({ observed: "running", desired: "running" });
  const { running, steps, stream } = wait();
  stream.onopen();
  await settled();
  stream.changed("ws-2");
  await settled();
  expect(asked).toHaveBeenCalledTimes(1);
  stream.changed("ws-1");
  await settled();
  stream.changed(null);
  await running;
  expect(steps).toEqual(["Launching a workspace", "Starting JupyterLab"]);
  expect(stream.readyState).toBe(Stream.CLOSED);
});

it("says why it cannot be started, and ends with the page", async () => {
  views.push({ observed: "failed", desired: "running", message: "The disk is full." });
  const failed = wait();
  failed.stream.onopen();
  await expect(failed.running).rejects.toThrow("The disk is full.");
  const left = wait();
  left.control.abort();
  await expect(left.running).rejects.toBe(left.control.signal.reason);
  expect(left.stream.readyState).toBe(Stream.CLOSED);
});
