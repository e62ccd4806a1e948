import { expect, test } from "vitest";
import { strandedMilli } from "./stranded.ts";
import { device, holding, quota, waiting, world } from "./testing.ts";

const devices = [device("0"), device("1"), device("2"), device("3", { state: "draining" })];
const holdings = [holding("a", "0", 750), holding("b", "1", 500)];

test("what is free is stranded where it serves none of those who wait", () => {
  const stranded = (...milli: number[]) =>
    strandedMilli(world({ devices, holdings, queue: milli.map((one) => waiting(`r${one}`, one)) }));
  expect(stranded(250)).toBe(0);
  expect(stranded(500)).toBe(250);
  expect(stranded(1000)).toBe(750);
  expect(stranded(3000)).toBe(750);
  expect(stranded(1000, 500)).toBe(250);
});

test("what is free on a card that a team keeps for itself is stranded for all others", () => {
  const alone = quota("vision", 500, 1000, { coTenancy: "own-team" });
  const quotas = [alone, quota("nlp", 500, 1000)];
  const asks = (teamId: string) => world({ devices, holdings, quotas, queue: [waiting("r", 250, { teamId })] });
  expect(strandedMilli(asks("vision"))).toBe(0);
  expect(strandedMilli(asks("nlp"))).toBe(750);
});

test("while nobody waits nothing is stranded, whatever policies and quotas leave free", () => {
  expect(strandedMilli(world({ devices, holdings }))).toBe(0);
  const whole = quota("vision", 500, 1000, { coTenancy: "whole-cards" });
  expect(strandedMilli(world({ devices, holdings, quotas: [whole] }))).toBe(0);
  expect(strandedMilli(world({ devices, holdings, quotas: [] }))).toBe(0);
});

test("what a quota alone holds back from those who wait is free, not stranded", () => {
  const asks = { devices, holdings, queue: [waiting("r", 250)] };
  expect(strandedMilli(world({ ...asks, quotas: [quota("vision", 0, 0)] }))).toBe(0);
});
