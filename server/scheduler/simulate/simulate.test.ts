import { expect, test } from "vitest";
import { jain } from "./outcome.ts";
import { type Pool, simulate } from "./simulate.ts";
import { type Asked, formatTrace, generateTrace, parseTrace } from "./trace.ts";

const pool = (gpus: number, guaranteedPercent = 0): Pool => ({
  ...{ gpus, gpusPerServer: 8, memoryBytes: 80 * 1024 ** 3, guaranteedPercent, microPerGpuHour: 2_000_000 },
});
const asked = (at: number, team: string, milli: number, holdSeconds: number): Asked => ({
  ...{ at, team, person: `${team}-a`, milli, kind: "batch", holdSeconds },
});

test("two that need the whole of one GPU come one after the other; on two they do not wait", () => {
  const trace = [asked(0, "a", 1000, 3600), asked(0, "b", 1000, 3600)];
  expect(simulate(trace, pool(1))).toMatchObject({
    ...{ granted: 2, waitP50: 3600, utilisation: 1, costMicro: 4_000_000 },
  });
  expect(simulate(trace, pool(2))).toMatchObject({ waitP99: 0, utilisation: 1, fairness: 1 });
});

test("a team below its guarantee gets its part back, and who was taken back finishes later", () => {
  const trace = [asked(0, "a", 1000, 7200), asked(600, "b", 1000, 600)];
  const outcome = simulate(trace, { ...pool(2, 100), gpus: 1, guaranteedPercent: 0 });
  expect(outcome).toMatchObject({ reclaimed: 0, waitP99: 6600 });
  const both = [asked(0, "a", 1000, 7200), asked(1, "a", 1000, 7200), asked(600, "b", 1000, 600)];
  expect(simulate(both, pool(2, 100))).toMatchObject({ reclaimed: 1, granted: 4 });
});

test("the same seed makes the same trace, which can be written and read again", () => {
  const options = { seed: 7, days: 1, teams: 2, peoplePerTeam: 4 };
  const trace = generateTrace(options);
  expect(trace.length).toBeGreaterThan(10);
  expect(generateTrace(options)).toEqual(trace);
  expect(parseTrace(formatTrace(trace))).toEqual(trace);
  expect(() => parseTrace("at_s,team,person,milli,kind,hold_s\n1,a,b,x,batch,5")).toThrow("Line 2");
});

test("a larger pool never makes the generated trace wait longer at the 95th percentile", () => {
  const trace = generateTrace({ seed: 3, days: 1, teams: 3, peoplePerTeam: 5 });
  const [small, large] = [4, 16].map((gpus) => simulate(trace, pool(gpus, 70)));
  expect(large?.waitP95).toBeLessThanOrEqual(small?.waitP95 ?? 0);
  expect(jain([1, 1, 1])).toBe(1);
  expect(jain([1, 0, 0, 0])).toBe(0.25);
});
