import { expect, it } from "vitest";
import { LaunchRefused } from "#server/launchers/launcher.ts";
import { MemoryBudget } from "./memory-budget.ts";

const GIB = 1024 ** 3;

it("refuses a start that would take the sum of all limits above the machine, also among starts at one time", async () => {
  const running = new Map([["ws-a", 4 * GIB]]);
  const budget = new MemoryBudget(16 * GIB, async () => running);
  const begun: string[] = [];
  const ends = Promise.withResolvers<void>();
  const starts = Array.from({ length: 100 }, async (_, index) => {
    await budget.with(`ws-${index}`, 4 * GIB, async () => {
      begun.push(`ws-${index}`);
      await ends.promise;
    });
  });
  const refused = starts.slice(3).map((start) => expect(start).rejects.toBeInstanceOf(LaunchRefused));
  await Promise.all(refused);
  expect(begun).toEqual(["ws-0", "ws-1", "ws-2"]);
  await expect(budget.with("ws-b", GIB, async () => "begun")).rejects.toThrow(
    /may use 16.0 GiB of the 16.0 GiB of memory .* needs 1.0 GiB\. Stop another workspace/,
  );
  ends.resolve();
  await Promise.all(starts.slice(0, 3));
  // What runs is counted by the launcher from here on; a workspace is not counted beside itself.
  expect(await budget.with("ws-a", 16 * GIB, async () => "begun")).toBe("begun");
  expect(await budget.with("ws-b", 12 * GIB, async () => "begun")).toBe("begun");
  await expect(budget.with("ws-b", 13 * GIB, async () => "begun")).rejects.toThrow(/needs 13.0 GiB/);
});
