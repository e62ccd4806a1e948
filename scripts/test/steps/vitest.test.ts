import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { UNHANDLED } from "#scripts/test/running-tests.ts";
import { runVitest } from "./vitest.ts";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), "sluice-vitest-"));
});
afterEach(async () => await rm(root, { recursive: true, force: true }));

type Result = Record<string, Record<string, "passed" | "failed">>;

/** A checkout whose Vitest is a script: it writes one report after the other, and fails where a test of it failed. */
async function outcomeOf(runs: Result[], line = "") {
  const program = path.join(root, "node_modules", "vitest", "vitest.mjs");
  await mkdir(path.dirname(program), { recursive: true });
  const reports = runs.map((files) => ({
    testResults: Object.entries(files).map(([name, tests]) => ({
      ...{ name: path.resolve(name), startTime: 1, endTime: 2 },
      status: Object.values(tests).includes("failed") ? "failed" : "passed",
      assertionResults: Object.entries(tests).map(([fullName, status]) => ({
        fullName,
        status,
        failureMessages: ["why"],
      })),
    })),
  }));
  const script = `import { existsSync, readFileSync, writeFileSync } from "node:fs";
const reports = ${JSON.stringify(reports)};
const count = existsSync("count") ? Number(readFileSync("count", "utf8")) : 0;
writeFileSync("count", String(count + 1));
writeFileSync("asked" + count, process.argv.slice(-1)[0]);
console.log(${JSON.stringify(line)});
const [, file] = /=(.*)/.exec(process.argv.find((word) => word.startsWith("--outputFile")));
writeFileSync(file, JSON.stringify(reports[count]));
process.exit(JSON.stringify(reports[count]).includes("failed") ? 1 : 0);`;
  await writeFile(program, script);
  return await runVitest(root, root, () => undefined, []);
}

const GOOD = { "a.test.ts": { one: "passed", two: "passed" } } as const;

it("takes a file that passes once more, alone, as passed, and names its test as flaky", async () => {
  const outcome = await outcomeOf([
    { ...GOOD, "b.test.ts": { three: "passed", four: "failed" } },
    { "b.test.ts": { three: "passed", four: "passed" } },
  ]);
  expect(outcome).toMatchObject({ passed: 4, failed: 0, flaky: ["b.test.ts: four"], failures: [] });
  expect(readFileSync(path.join(root, "asked1"), "utf8")).toBe("b.test.ts");
});

it("tells a test that fails in both runs, with why", async () => {
  const outcome = await outcomeOf([{ ...GOOD, "b.test.ts": { four: "failed" } }, { "b.test.ts": { four: "failed" } }]);
  expect(outcome).toMatchObject({ passed: 2, failed: 1, flaky: [], failures: ["b.test.ts: four\nwhy"] });
});

it("runs many broken files once only", async () => {
  const broken = Object.fromEntries(
    ["b", "c", "d", "e"].map((name) => [`${name}.test.ts`, { one: "failed" } as const]),
  );
  expect(await outcomeOf([{ ...GOOD, ...broken }])).toMatchObject({ passed: 2, failed: 4, flaky: [] });
});

it("takes a second run that ends without a report as a failure", async () => {
  const outcome = await outcomeOf([{ ...GOOD, "b.test.ts": { four: "failed" } }]);
  expect(outcome).toMatchObject({ failed: 1, flaky: [], failures: ["b.test.ts: four\nwhy"] });
});

it("counts results of no other file whose name ends alike", async () => {
  const outcome = await outcomeOf([
    { "a.test.ts": { one: "passed" }, "b/a.test.ts": { two: "failed" } },
    { "a.test.ts": { one: "passed" }, "b/a.test.ts": { two: "passed" } },
  ]);
  expect(outcome).toMatchObject({ passed: 2, failed: 0, flaky: ["b/a.test.ts: two"] });
});

it("runs nothing once more beside an error that no test caught", async () => {
  const runs: Result[] = [{ ...GOOD, "b.test.ts": { four: "failed" } }, { "b.test.ts": { four: "passed" } }];
  const outcome = await outcomeOf(runs, `${UNHANDLED}write EPIPE`);
  expect(outcome).toMatchObject({
    failed: 2,
    flaky: [],
    failures: ["b.test.ts: four\nwhy", "outside of all tests\nwrite EPIPE"],
  });
});
