import { expect, it } from "vitest";
import { WorkQueue } from "./work-queue.ts";

const options = { maxRunning: 2, maxWaiting: 3, refusal: "Too many at once.", retryAfterSeconds: 5 };

it("does so much at a time, the rest in order, and refuses what cannot wait", async () => {
  const queue = new WorkQueue(options);
  const [ends, begun]: [(() => void)[], number[]] = [[], []];
  const all = [0, 1, 2, 3, 4, 5].map((index) =>
    queue.run(async () => {
      begun.push(index);
      await new Promise<void>((resolve) => ends.push(resolve));
      return index;
    }),
  );
  await expect(all[5]).rejects.toMatchObject({ code: "too-many", detail: { retryAfterSeconds: 5 } });
  expect(begun).toEqual([0, 1]);
  for (let done = 0; done < 5; done++) {
    ends.shift()?.();
    await expect.poll(() => begun.length).toBe(Math.min(5, done + 3));
  }
  expect(await Promise.all(all.slice(0, 5))).toEqual([0, 1, 2, 3, 4]);
  expect(begun).toEqual([0, 1, 2, 3, 4]);
});

it("has a place again after work that has failed", async () => {
  const queue = new WorkQueue({ ...options, maxRunning: 1, maxWaiting: 0 });
  await expect(queue.run(async () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(await queue.run(async () => "yes")).toBe("yes");
});
