import { expect, it } from "vitest";
import { compareNames } from "./names.ts";

it("orders names as people count", () => {
  const names = ["gpu-10", "Gpu-3", "gpu-2", "Émile", "eva", "Zoe", "team-100", "team-11"];
  expect(names.sort(compareNames)).toEqual([
    ...["Émile", "eva", "gpu-2", "Gpu-3", "gpu-10"],
    ...["team-11", "team-100", "Zoe"],
  ]);
});

it("orders instants and addresses, too", () => {
  const times = ["2026-11-24T00:00:00Z", "2026-11-03T23:59:59Z", "9999", ""];
  expect(times.sort(compareNames)).toEqual(["", "2026-11-03T23:59:59Z", "2026-11-24T00:00:00Z", "9999"]);
  expect(["10.0.0.12", "10.0.0.9"].sort(compareNames)).toEqual(["10.0.0.9", "10.0.0.12"]);
});
