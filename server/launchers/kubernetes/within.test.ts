import { expect, it } from "vitest";
import { within } from "./within.ts";

const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;

it("gives what comes in time, or fails with it, and leaves no timer", async () => {
  const before = timers();
  expect(await within(60_000, Promise.resolve(1))).toBe(1);
  await expect(within(60_000, Promise.reject(new Error("refused")))).rejects.toThrow("refused");
  expect(timers()).toBe(before);
});

it("gives nothing for what comes too late", async () => {
  const { promise, reject } = Promise.withResolvers<number>();
  expect(await within(5, promise)).toBeUndefined();
  reject(new Error("nobody listens any more"));
});
