import { expect, it } from "vitest";
import { nextSteps, runSteps } from "#scripts/test/schedule.ts";
import type { Step } from "#scripts/test/step.ts";

const step = (name: string, more: Partial<Step> = {}): Step => ({
  ...{ name, kind: "suite", cores: 1 },
  run: async () => ({ passed: 1, failed: 0 }),
  ...more,
});
const none: ReadonlySet<string> = new Set();
const names = (steps: readonly Step[]) => steps.map(({ name }) => name);

it("starts steps in their order until the cores are taken", () => {
  const waiting = [step("a"), step("b", { cores: 2 }), step("c"), step("d")];
  const { start } = nextSteps({ waiting, running: [], succeeded: none, failed: none, cores: 2 });
  expect(names(start)).toEqual(["a", "c"]);
});

it("starts a step that waits for the network beside a full machine", () => {
  const state = { running: [step("busy", { cores: 2 })], succeeded: none, failed: none, cores: 2 };
  expect(names(nextSteps({ ...state, waiting: [step("a"), step("net", { cores: 0 })] }).start)).toEqual(["net"]);
});

it("runs a step alone that needs more cores than there are", () => {
  const waiting = [step("wide", { cores: 4 }), step("a")];
  const { start } = nextSteps({ waiting, running: [], succeeded: none, failed: none, cores: 2 });
  expect(names(start)).toEqual(["wide"]);
});

it("waits for a step of this run, and ignores one that is not part of it", () => {
  const waiting = [step("suite", { after: ["build", "elsewhere"] }), step("build")];
  const state = { waiting, running: [], failed: none, cores: 2 };
  expect(names(nextSteps({ ...state, succeeded: none }).start)).toEqual(["build"]);
  const [suite] = waiting.slice(0, 1);
  expect(names(nextSteps({ ...state, waiting: suite ? [suite] : [], succeeded: new Set(["build"]) }).start)).toEqual([
    "suite",
  ]);
});

it("counts a step as failed whose build failed, and runs the others", async () => {
  const broken = step("build", { kind: "build", run: () => Promise.reject(new Error("no compiler\nmore")) });
  const lines: string[] = [];
  const results = await runSteps([broken, step("suite", { after: ["build"] }), step("other")], {
    cores: 2,
    print: (line) => lines.push(line),
  });
  const outcomes = results.map(({ name, passed, failed, note }) => ({ name, passed, failed, note }));
  expect(outcomes.sort((a, b) => a.name.localeCompare(b.name))).toEqual([
    { name: "build", passed: 0, failed: 1, note: "no compiler" },
    { name: "other", passed: 1, failed: 0, note: undefined },
    { name: "suite", passed: 0, failed: 1, note: "not run: build failed" },
  ]);
  expect(lines).toContain("build      │ no compiler");
});

it("refuses an order with a circle", async () => {
  const circle = [step("a", { after: ["b"] }), step("b", { after: ["a"] })];
  await expect(runSteps(circle, { cores: 2, print: () => undefined })).rejects.toThrow("its order has a circle");
});
