import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createPace } from "./pace.ts";

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
  vi.spyOn(Math, "random").mockReturnValue(0);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** A pace, and when it has refreshed, in milliseconds from now. */
function paced() {
  const began = Date.now();
  const at: number[] = [];
  return { wake: createPace(() => at.push(Date.now() - began)), at };
}

it("reads at once what has changed after a while of quiet, however slow the pace", () => {
  const { wake, at } = paced();
  wake(60);
  vi.advanceTimersByTime(60);
  expect(at).toEqual([50]);
});

it("reads once what changes together", () => {
  const { wake, at } = paced();
  for (let n = 0; n < 40; n++) {
    wake(1 / 3);
    vi.advanceTimersByTime(1);
  }
  vi.advanceTimersByTime(10_000);
  expect(at).toEqual([50]);
});

it("keeps the pace under a stream of changes, and reads what came last", () => {
  const { wake, at } = paced();
  for (let n = 0; n < 100; n++) {
    wake(2);
    vi.advanceTimersByTime(100);
  }
  expect(at).toEqual([50, 2050, 4050, 6050, 8050]);
  vi.advanceTimersByTime(60_000);
  expect(at).toEqual([50, 2050, 4050, 6050, 8050, 10_050]);
});

it("comes sooner for who wants it sooner, for all of them, and not again for the others", () => {
  const { wake, at } = paced();
  wake(60);
  vi.advanceTimersByTime(1000);
  wake(60);
  vi.advanceTimersByTime(1000);
  wake(1 / 3);
  wake(5);
  vi.advanceTimersByTime(120_000);
  expect(at).toEqual([50, 2050]);
});

it("does not go on in step with other pages that the same changes wake", () => {
  vi.mocked(Math.random).mockReturnValueOnce(0).mockReturnValueOnce(0.5);
  const [one, other] = [paced(), paced()];
  for (let n = 0; n < 30; n++) {
    one.wake(2);
    other.wake(2);
    vi.advanceTimersByTime(100);
  }
  expect([one.at, other.at]).toEqual([
    [50, 2050],
    [50, 2550],
  ]);
});
