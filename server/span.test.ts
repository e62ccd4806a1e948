import { expect, it } from "vitest";
import { formatSpan } from "./span.ts";

it("says a span of time in the units that people use for it", () => {
  const spans: [number, string][] = [
    [0.4, "0 s"],
    [60, "60 s"],
    [119.6, "2 min"],
    [600, "10 min"],
    [3600, "1 h"],
    [5400, "1 h 30 min"],
  ];
  for (const [seconds, words] of spans) expect(formatSpan(seconds)).toBe(words);
});
