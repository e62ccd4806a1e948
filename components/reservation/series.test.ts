import { expect, it } from "vitest";
import { seriesOf } from "./series.ts";

it("a series is one row of a table: its next reservation, with those that follow", () => {
  const [a, b, c, alone, other] = [
    { id: "a", seriesId: "gone" },
    { id: "b", seriesId: "gone" },
    { id: "c", seriesId: "gone" },
    { id: "alone", seriesId: null },
    { id: "other", seriesId: "other" },
  ] as const;
  expect(seriesOf([a, alone, b, other, c])).toEqual([
    { next: a, following: [b, c] },
    { next: alone, following: [] },
    { next: other, following: [] },
  ]);
  expect(seriesOf([])).toEqual([]);
});
