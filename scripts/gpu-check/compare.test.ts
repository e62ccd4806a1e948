/** What gpu-check makes of figures, without a card: its budgets, and what it calls equal, within reach and cut. */
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { z } from "zod";

/** What an expression over `compare` and `given` comes to. */
function python(expression: string, given: unknown = null): unknown {
  const program = `import compare, json, sys; given = json.load(sys.stdin); print(json.dumps(${expression}))`;
  const options = { cwd: import.meta.dirname, input: JSON.stringify(given), encoding: "utf8" } as const;
  return JSON.parse(execFileSync("python3", ["-B", "-c", program], options));
}

const step = (step_ms: number, losses: number[] = [2, 1]) => ({ step_ms, losses });
const models = ["mlp", "gpt2_8x1024", "gpt2_1x128", "resnet50_64"];
const steady = Object.fromEntries(models.map((name) => [name, step(10)]));
const by = { ...steady, round_trip: { launch_and_wait_ms: 0.1 } };
const runs = { native: steady, again: steady, unix: by, tls: by, rtt1: by };
const judged = z.tuple([z.record(z.string(), z.record(z.string(), z.unknown())), z.boolean()]);
const training = (changed: Record<string, object>) => {
  const [ratios, within] = judged.parse(python("compare.compare_training(given)", { ...runs, ...changed }));
  return { ratios, within };
};

test("all parts end within eight minutes, however long each takes", () => {
  expect(python("compare.LIMIT")).toBe(480);
  const all = python("compare.BEGINNING + compare.needed(compare.together(compare.PARTS)) + compare.ENDING");
  expect(all).toBeLessThanOrEqual(480);
});

test("what is asked as a ratio is measured first, and alone", () => {
  const groups = z.array(z.array(z.string())).parse(python("compare.together(compare.PARTS)"));
  expect(groups[0]).toEqual(["training"]);
  expect(groups.at(-1)).toEqual(["1", "cuda", "operations", "3"]);
  expect(python('compare.together(["1", "3", "4", "cuda"])')).toEqual([["1", "3"], ["4"], ["cuda"]]);
});

test("a part may use what those before it have left, but nothing of those behind it", () => {
  const ends = (part: string, now: number, end: number) =>
    python('compare.part_ends(*given, [["share"], ["1", "3"]])', [part, now, end]);
  const times = z.tuple([z.number(), z.number(), z.number()]);
  const [killed, share, compared] = times.parse(python('[compare.TIMES[name] for name in ("killed", "share", "1")]'));
  expect(ends("killed", 400 - compared - share - killed - 50, 400)).toBe(400 - compared - share);
  // One that begins late has its own time, or what there is.
  expect(ends("killed", 400 - compared, 400)).toBe(400 - compared + killed);
  expect(ends("killed", 390, 400)).toBe(400);
});

test("a step is compared with the faster native run, and judged by the reach of its way", () => {
  const slower = { ...by, gpt2_8x1024: step(10.3) };
  expect(training({ again: slower }).within).toBe(true);
  const { ratios, within } = training({ again: slower, tls: slower });
  expect(within).toBe(false);
  expect(ratios.gpt2_8x1024).toMatchObject({ tls: { ratio: 1.03, reach: 1.01, ok: false }, unix: { ok: true } });
  // With a millisecond more on each round trip five per cent are allowed.
  expect(training({ rtt1: slower }).within).toBe(true);
});

test("a model that a run did not come to says why, and is not within reach", () => {
  const others = Object.fromEntries(Object.entries(by).filter(([name]) => name !== "resnet50_64"));
  const cut = { ...others, failed: { name: "failed", error: "no end within 29 s" } };
  const remoted = training({ tls: cut });
  expect(remoted.within).toBe(false);
  expect(remoted.ratios.resnet50_64?.tls).toMatchObject({ cannot: "no end within 29 s" });
  const natively = training({ native: cut });
  expect(natively.within).toBe(false);
  expect(natively.ratios.resnet50_64).toEqual({ cannot: "natively: no end within 29 s" });
  // What a card cannot do natively is no fault of ours.
  expect(training({ native: { ...steady, gpt2_8x1024: { error: "out of memory" } } }).within).toBe(true);
});

test("a step of the toy may take one round trip of its way more, and what native runs differ", () => {
  const mlp = (step_ms: number, launch_and_wait_ms = 0.1) => ({
    ...by,
    mlp: step(step_ms),
    round_trip: { launch_and_wait_ms },
  });
  expect(training({ unix: mlp(10.09) }).within).toBe(true);
  const { ratios, within } = training({ unix: mlp(10.2), rtt1: mlp(11.2, 1.3) });
  expect(within).toBe(false);
  expect(ratios.mlp?.unix).toMatchObject({ added_ms: 0.2, round_trip_ms: 0.1, native_noise_ms: 0, ok: false });
  expect(ratios.mlp?.rtt1).toMatchObject({ added_ms: 1.2, round_trip_ms: 1.3, ok: true });
  expect(training({ again: mlp(10.15), unix: mlp(10.2) }).within).toBe(true);
  // Without the round trip nothing is said about it.
  expect(training({ tls: steady }).ratios.mlp?.tls).toMatchObject({ ok: false });
});

test("losses are native's to the bit, or about as far off as native's own", () => {
  const lost = (last: number) => ({ ...by, gpt2_1x128: step(10, [2, last]) });
  expect(training({ tls: lost(1.001) }).within).toBe(false);
  expect(training({ tls: lost(1.001), again: lost(1.0006) }).within).toBe(true);
  expect(training({ tls: lost(1.01), again: lost(1.001) }).within).toBe(false);
});

test("losses are compared as far as both runs came", () => {
  expect(python("compare.off(*given)", [step(1, [4, 2, 1]), step(1, [4, 2])])).toBe(0);
  expect(python("compare.off(*given)", [step(1, [4, 3]), step(1, [4, 2, 1])])).toBe(0.5);
  expect(python("compare.off(*given)", [null, step(1)])).toBeNull();
});

test("programs that a native run was cut before say nothing, and those of a remoted one differ", () => {
  const names = ["a", "b", "c"];
  const outcomes = (native: object, again: object, remoted: object) =>
    python("compare.compare_outcomes(*given)", [names, native, again, remoted]);
  const passed = { a: true, b: true, c: true };
  expect(outcomes(passed, { a: true, b: false, c: true }, { a: true, b: false, c: true })).toEqual([[], ["b"]]);
  // A second native run that was cut makes nothing unsteady.
  expect(outcomes(passed, {}, { a: true, b: true, c: false })).toEqual([["c"], []]);
  expect(outcomes(passed, passed, { a: true })).toEqual([["b", "c"], []]);
  expect(outcomes({ a: true }, {}, passed)).toEqual([[], []]);
});

test("a second native run is asked for only where a bit differs, and then says how much may", () => {
  const value = (number: number) => ({ samples: [number, 2], digest: String(number) });
  const [native, remoted] = [{ x: value(1) }, { x: value(1.5) }];
  expect(python("compare.differ(*given)", [native, native])).toBe(false);
  expect(python("compare.differ(*given)", [native, remoted])).toBe(true);
  const compared = (again: object) => python("compare.compare_values(*given)", [native, again, remoted]);
  expect(compared({})).toEqual({ x: { noise: 0, difference: 0.25, ok: false } });
  expect(compared({ x: value(2) })).toEqual({ x: { noise: 0.5, difference: 0.25, ok: true } });
});

test("what a card or a build cannot do is skipped with its reason, but not by our libraries alone", () => {
  const [value, skipped] = [{ samples: [1], digest: "1" }, { skipped: "no NCCL" }];
  const compared = (native: object, remoted: object) =>
    python("compare.compare_values(given[0], {}, given[1])", [{ x: native }, { x: remoted }]);
  expect(compared(skipped, skipped)).toEqual({ x: { skipped: "no NCCL" } });
  expect(compared(value, skipped)).toEqual({ x: { remoted: "no NCCL" } });
  expect(compared(value, value)).toEqual({ x: { noise: 0, difference: 0, ok: true } });
});
