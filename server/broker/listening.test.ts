import { expect, test, vi } from "vitest";
import { Listening } from "./listening.ts";

test("one listens from the first look on, and anew after a break: of the machine, of the process, or of the clock", () => {
  const listening = new Listening();
  expect(listening.since(1_000)).toBe(1_000);
  expect([2_000, 3_500, 8_000].map((at) => listening.since(at))).toEqual([1_000, 1_000, 1_000]);
  // Suspended for an hour.
  expect(listening.since(3_608_000)).toBe(3_608_000);
  expect(listening.since(3_609_000)).toBe(3_608_000);
  // The clock was set back.
  expect(listening.since(9_000)).toBe(9_000);
  expect(listening.since(10_000)).toBe(9_000);
  listening.interrupt();
  expect(listening.since(11_000)).toBe(11_000);
});

test("looks at the clock by itself, and does not take a look for listening after an interruption", () => {
  vi.useFakeTimers({ now: 1_000 });
  const listening = new Listening();
  const looking = listening.start();
  try {
    expect(listening.since(Date.now())).toBe(1_000);
    vi.advanceTimersByTime(60_000);
    expect(listening.since(Date.now())).toBe(1_000);
    listening.interrupt();
    vi.advanceTimersByTime(30_000);
    expect(listening.since(Date.now())).toBe(91_000);
  } finally {
    looking.stop();
    vi.useRealTimers();
  }
});
