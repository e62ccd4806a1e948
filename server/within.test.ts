import { expect, it } from "vitest";
import { within } from "./within.ts";

const never = () => {
  throw new Error("not in time");
};
const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;

it("gives what comes in time, or fails with it, and leaves no timer", async () => {
  const before = timers();
  expect(await within(60_000, Promise.resolve(1), never)).toBe(1);
  const refused = Promise.reject<number>(new Error("refused"));
  await expect(within(60_000, refused, never)).rejects.toThrow("refused");
  expect(timers()).toBe(before);
});

it("gives or throws what is meant for what comes too late", async () => {
  const { promise, reject } = Promise.withResolvers<number>();
  expect(await within(5, promise, () => "late")).toBe("late");
  await expect(within(5, promise, never)).rejects.toThrow("not in time");
  reject(new Error("nobody listens any more"));
});
