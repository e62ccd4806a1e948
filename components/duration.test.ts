import { expect, it } from "vitest";
import { readDuration, writeDuration } from "./duration.ts";

it.each([
  ["90s", 90],
  ["20m", 1200],
  ["1h 30m", 5400],
  [" 7D ", 604_800],
  ["1d2h", 93_600],
  ["0s", 0],
])("%j is %i seconds", (text, seconds) => {
  expect(readDuration(text)).toBe(seconds);
});

it.each(["", "20", "m", "-5m", "1.5h", "5 minutes", "1h30"])("%j is no length of time", (text) => {
  expect(readDuration(text)).toBeUndefined();
});

it.each([0, 45, 60, 5400, 86_400, 604_800, 90_061])("what is written for %i is read again", (seconds) => {
  expect(readDuration(writeDuration(seconds))).toBe(seconds);
});
