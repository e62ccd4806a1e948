import { expect, it } from "vitest";
import { enforcedLimits } from "./enforced-limits.ts";

const mode = { asRoot: true, userNamespace: true };
const missing = "cgroup v2 is not mounted";

it("names control groups where the kernel enforces the size", () => {
  expect(enforcedLimits({ groups: { folder: "/sys/fs/cgroup/sluice" }, mode, isWatching: true })).toMatchObject({
    by: "control-group",
    sentence: expect.stringContaining("cgroup v2") as string,
  });
});

it("names resource limit and watch elsewhere, and why", () => {
  const { by, sentence } = enforcedLimits({ groups: { missing }, mode, isWatching: true });
  expect(by).toBe("watch");
  expect(sentence).toMatch(/^Processes by a resource limit \(RLIMIT_NPROC\) and memory by a watch every second/);
  expect(sentence).toContain(`Why no control groups: ${missing}.`);
});

it("tells that files in memory have no limit without a sandbox", () => {
  const { sentence } = enforcedLimits({ groups: { missing }, mode: undefined, isWatching: true });
  expect(sentence).toMatch(/^Processes and memory by a watch every second, \/tmp and \/dev\/shm are those of the host/);
});

it("tells that nothing holds memory before the watch starts", () => {
  expect(enforcedLimits({ groups: { missing }, mode, isWatching: false }).by).toBe("none");
});
