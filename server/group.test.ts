import { expect, test } from "vitest";
import { Group, type Outcome } from "./group.ts";

const twice = (inputs: readonly number[]): Outcome<number>[] =>
  inputs.map((value) => (value < 0 ? { ok: false, error: new Error("negative") } : { ok: true, value: 2 * value }));

test("who comes at one time, and who comes while a batch runs, share a batch, and each gets its own answer", async () => {
  const batches: number[][] = [];
  const group = new Group<number, number>(async (inputs) => {
    batches.push([...inputs]);
    await new Promise((done) => setTimeout(done, 5));
    return twice(inputs);
  });
  const join = (values: number[]) => Promise.allSettled(values.map(async (value) => await group.join(value)));
  const early = join([1, 2]);
  await expect.poll(() => batches).toHaveLength(1);
  const answers = (await Promise.all([early, join([-3, 4])])).flat();
  expect(batches).toEqual([
    [1, 2],
    [-3, 4],
  ]);
  expect(answers.map((one) => (one.status === "fulfilled" ? one.value : String(one.reason)))).toEqual([
    2,
    4,
    "Error: negative",
    8,
  ]);
});

test("a batch that one has spoiled is worked off one by one; a hopeless one is not", async () => {
  const batches: number[][] = [];
  const spoiled = (hopeless: boolean) =>
    new Group<number, number>(
      async (inputs) => {
        batches.push([...inputs]);
        await Promise.resolve();
        if (inputs.includes(13)) throw new Error("spoiled");
        return twice(inputs);
      },
      () => hopeless,
    );
  const results = async (group: Group<number, number>) =>
    (await Promise.allSettled([1, 13, 2].map(async (value) => await group.join(value)))).map((one) => one.status);
  expect(await results(spoiled(false))).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(batches).toEqual([[1, 13, 2], [1], [13], [2]]);
  expect(await results(spoiled(true))).toEqual(["rejected", "rejected", "rejected"]);
});
