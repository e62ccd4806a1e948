import { expect, test } from "vitest";
import { RoundTrip } from "./round-trip.ts";

test("the fastest of the last pings is the way there and back", () => {
  const trip = new RoundTrip();
  expect(trip.microseconds()).toBeUndefined();
  for (const ms of [5, 0.7, 40]) trip.add(ms);
  expect(trip.microseconds()).toBe(700);
  // A server that has moved away is found to be far.
  for (let turn = 0; turn < 15; turn++) trip.add(9);
  expect(trip.microseconds()).toBe(9000);
});
