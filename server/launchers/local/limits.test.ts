import { describe, expect, it } from "vitest";
import { defaultSize, filesLimitOf, limitsOf } from "./limits.ts";

const GIB = 1024 ** 3;

describe("the limits of a local workspace", () => {
  it("follow from its size", () => {
    expect(limitsOf({ cpuMilli: 2000, memoryBytes: 4 * GIB })).toEqual({
      ...{ cpuMilli: 2000, memoryBytes: 4 * GIB, tasks: 2048 },
      ...{ shmBytes: 2 * GIB, tmpBytes: GIB },
    });
  });

  it("have bounds for the smallest and the largest sizes", () => {
    expect(limitsOf({ cpuMilli: 500, memoryBytes: GIB / 4 }).tasks).toBe(512);
    expect(limitsOf({ cpuMilli: 64_000, memoryBytes: 256 * GIB })).toMatchObject({ tasks: 4096, tmpBytes: 10 * GIB });
  });

  it("of files on disk are in proportion to its memory, within bounds", () => {
    const files = (memoryGib: number) => filesLimitOf(memoryGib * GIB, 100 * GIB) / GIB;
    expect([0.25, 1, 4, 16, 32, 512].map(files)).toEqual([25, 25, 100, 400, 800, 800]);
  });

  it("exist for a workspace without a size", () => {
    expect(defaultSize().memoryBytes).toBeLessThanOrEqual(4 * GIB);
    expect(limitsOf(defaultSize()).tasks).toBeGreaterThanOrEqual(512);
  });
});
