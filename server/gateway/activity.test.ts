import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Activity } from "./activity.ts";

let written: string[];
let fails: boolean;
let activity: Activity;
beforeEach(() => {
  vi.useFakeTimers();
  [written, fails] = [[], false];
  activity = new Activity(async (id) => {
    written.push(id);
    if (fails) throw new Error("the database is away");
  });
});
afterEach(() => {
  activity.close();
  vi.useRealTimers();
});

it("writes once a minute for each workspace", () => {
  for (let n = 0; n < 3; n++) for (const id of ["ws-a", "ws-b"]) activity.record(id);
  expect(written).toEqual(["ws-a", "ws-b"]);
  vi.advanceTimersByTime(60_000);
  activity.record("ws-a");
  expect(written).toEqual(["ws-a", "ws-b", "ws-a"]);
});

it("forgets each workspace after a minute", () => {
  for (let n = 0; n < 1000; n++) activity.record(`ws-${n}`);
  expect(activity.size).toBe(1000);
  vi.advanceTimersByTime(60_000);
  expect(activity.size).toBe(0);
});

it("writes again at the next request after a failure", async () => {
  fails = true;
  activity.record("ws-a");
  await vi.advanceTimersByTimeAsync(0);
  expect(activity.size).toBe(0);
  activity.record("ws-a");
  expect(written).toEqual(["ws-a", "ws-a"]);
});
