import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { listen } from "./stream.ts";

/** The browser's end of a stream, as far as a tab sees it. */
class FakeStream {
  static readonly CLOSED = 2;
  static all: FakeStream[] = [];
  readyState = 0;
  onopen: () => void = () => undefined;
  onerror: () => void = () => undefined;
  onmessage: (message: { data: string }) => void = () => undefined;
  readonly url: string;
  constructor(url: string) {
    this.url = url;
    FakeStream.all.push(this);
  }
  open() {
    this.readyState = 1;
    this.onopen();
  }
  tell(topic: string, id: string | null = null) {
    this.onmessage({ data: JSON.stringify({ topic, id }) });
  }
  close() {
    this.readyState = FakeStream.CLOSED;
  }
}

const page = Object.assign(new EventTarget(), { visibilityState: "visible" });
const leave: (() => void)[] = [];

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("EventSource", FakeStream);
  vi.stubGlobal("document", page);
});
afterEach(() => {
  for (const each of leave.splice(0)) each();
  vi.advanceTimersByTime(5000);
  FakeStream.all = [];
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

/** Somebody on the page who listens, and what woke them. */
function follower(topics: string[], since = 0): string[] {
  const heard: string[] = [];
  leave.push(listen({ topics: new Set(topics), since, onEvent: ({ topic }) => heard.push(topic) }));
  return heard;
}

function see(visibilityState: "visible" | "hidden") {
  page.visibilityState = visibilityState;
  page.dispatchEvent(new Event("visibilitychange"));
}

it("has one stream for all who follow, and wakes who follows the topic alone", () => {
  const frame = follower(["mine", "notice"], 30);
  const slow = follower(["lease", "pool"], 20);
  vi.advanceTimersByTime(50);
  expect(FakeStream.all.map(({ url }) => url)).toEqual(["/api/v1/live?topics=lease,mine,notice,pool&since=20"]);
  const [stream] = FakeStream.all;
  stream?.open();
  stream?.tell("lease");
  expect([frame, slow]).toEqual([[], ["lease"]]);
  stream?.tell("mine");
  expect([frame, slow]).toEqual([["mine"], ["lease"]]);
});

it("follows on the old stream until the one with other topics is open, which is asked from when the new was read", () => {
  const frame = follower(["mine"], 10);
  vi.advanceTimersByTime(50);
  const [first] = FakeStream.all;
  first?.open();
  follower(["pool"], 70);
  vi.advanceTimersByTime(50);
  const second = FakeStream.all[1];
  expect(second?.url).toBe("/api/v1/live?topics=mine,pool&since=70");
  first?.tell("mine");
  expect(frame).toEqual(["mine"]);
  expect(first?.readyState).not.toBe(FakeStream.CLOSED);
  second?.open();
  expect(first?.readyState).toBe(FakeStream.CLOSED);
});

it("wakes everybody when it was lost: nobody knows what has happened meanwhile", () => {
  const frame = follower(["mine"]);
  const slow = follower(["lease"]);
  vi.advanceTimersByTime(50);
  const [stream] = FakeStream.all;
  stream?.open();
  stream?.onerror();
  expect([frame, slow]).toEqual([[], []]);
  stream?.open();
  expect([frame, slow]).toEqual([["mine"], ["lease"]]);
});

it("is closed for a page that nobody sees, and opened again from when that was read", () => {
  follower(["mine"], 10);
  vi.advanceTimersByTime(50);
  FakeStream.all[0]?.open();
  see("hidden");
  vi.advanceTimersByTime(1999);
  expect(FakeStream.all[0]?.readyState).toBe(1);
  vi.advanceTimersByTime(1);
  expect(FakeStream.all[0]?.readyState).toBe(FakeStream.CLOSED);
  see("visible");
  vi.advanceTimersByTime(50);
  expect(FakeStream.all.map(({ url }) => url)).toEqual(
    Array.from({ length: 2 }, () => "/api/v1/live?topics=mine&since=10"),
  );
});
