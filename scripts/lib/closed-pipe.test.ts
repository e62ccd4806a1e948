import { spawnSync } from "node:child_process";
import path from "node:path";
import { expect, it } from "vitest";

const MODULE = path.resolve("scripts/lib/closed-pipe.mjs");

it("ends a command without a message when the reader of its output leaves", () => {
  const program = `
    const { endWithReader } = await import(${JSON.stringify(MODULE)});
    endWithReader();
    setInterval(() => console.log("line"), 1);`;
  const shell = `{ "$0" --input-type=module -e "$1"; echo "status $?" >&2; } | head -n 1`;
  const { stdout, stderr } = spawnSync("sh", ["-c", shell, process.execPath, program], {
    encoding: "utf8",
    timeout: 30_000,
  });
  expect(stdout).toBe("line\n");
  expect(stderr).toBe("status 141\n");
}, 40_000);
