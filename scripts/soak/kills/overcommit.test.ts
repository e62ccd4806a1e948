import { describe, expect, it } from "vitest";
import { type Hold, overcommitted } from "./overcommit.ts";

const hold = (what: string, milli: number, from: number, to: number, gpuId = "gpu-a"): Hold => {
  return { what, gpuId, milli, from, to };
};

describe("overcommitted", () => {
  it("accepts leases that follow each other without a pause", () => {
    expect(overcommitted([hold("b", 1000, 10, 20), hold("a", 1000, 0, 10), hold("c", 500, 20, 30)])).toEqual([]);
  });

  it("accepts shares that fill a GPU", () => {
    expect(overcommitted([hold("a", 500, 0, 10), hold("b", 250, 2, 8), hold("c", 250, 3, 9)])).toEqual([]);
  });

  it("names the leases that hold too much of one GPU together", () => {
    expect(overcommitted([hold("a", 500, 0, 10), hold("b", 500, 2, 8), hold("c", 250, 7, 9)])).toEqual([
      "1250 thousandths of gpu-a were held at one time, by a (500), b (500), c (250)",
    ]);
  });

  it("adds nothing up across GPUs", () => {
    expect(overcommitted([hold("a", 1000, 0, 10), hold("b", 1000, 0, 10, "gpu-b")])).toEqual([]);
  });
});
