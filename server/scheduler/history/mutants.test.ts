import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { histories, play } from "./history.ts";
import { mutants } from "./mutants.ts";
import { broken } from "./properties.ts";

describe("the properties find a scheduler that", () => {
  test.each(Object.entries(mutants))("%s", (_, evaluate) => {
    const found = fc.check(
      fc.property(histories, (history) => broken(play(history, evaluate).happened) === undefined),
      { numRuns: 1_000, endOnFailure: true, seed: 1 },
    );
    expect(found.failed).toBe(true);
  });
});
