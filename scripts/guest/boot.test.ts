import { expect, it } from "vitest";
import { runInGuest } from "./boot.ts";

/** A program in the place of QEMU, which prints a console. */
const printing = (script: string) => ({
  qemu: ["sh", "-c", script, "qemu"],
  env: process.env,
  kernel: "/boot/vmlinuz",
  busybox: "/bin/true",
  modules: [],
});
const options = { root: "/", files: [], say: () => undefined };

it.each([
  ["echo 'sluice-guest: ended with 0'", 0],
  // A serial console ends its lines with a carriage return.
  ["printf 'sluice-guest: ended with 0\\r\\n'", 0],
  ["echo 'sluice-guest: ended with 1'; exit 0", 1],
  ["echo 'Kernel panic'; exit 0", 1],
  ["echo 'not sluice-guest: ended with 0'", 1],
  ["exit 3", 1],
])("takes the status from the console (%s)", async (script, status) => {
  expect(await runInGuest(printing(script), options)).toBe(status);
});

it("refuses file names that the kernel's command line would split", async () => {
  await expect(runInGuest(printing("true"), { ...options, files: ["a b"] })).rejects.toThrow(/spaces or quotes: a b$/);
});
