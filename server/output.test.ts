/** Output on a small disk that fills up and becomes free again. */
import { execFile, spawnSync } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const execute = promisify(execFile);
const OUTPUT = JSON.stringify(path.resolve("server/output.ts"));
const LOG = JSON.stringify(path.resolve("server/log.ts"));
const isMountable = spawnSync("unshare", ["--user", "--map-root-user", "--mount", "true"]).status === 0;

const COMMON = `
  import { readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
  import { setTimeout as sleep } from "node:timers/promises";
  const fill = () => { try { writeFileSync("/mnt/filler", Buffer.alloc(1 << 24)); } catch {} };
  const free = () => rmSync("/mnt/filler");
`;

/** Runs a program with an empty disk of that size at /mnt; returns what is printed. */
async function onDisk(size: string, program: string, redirect = ""): Promise<string> {
  const script = `mount -t tmpfs -o size=${size} none /mnt && "$0" --input-type=module -e "$1" ${redirect}`;
  const args = ["--user", "--map-root-user", "--mount", "sh", "-c", script, process.execPath, COMMON + program];
  return (await execute("unshare", args, { timeout: 20_000, env: { ...process.env, SLUICE_LOG_LEVEL: "info" } }))
    .stdout;
}

it.skipIf(!isMountable)(
  "counts the lines that a full disk did not take, and writes the waiting ones later",
  async () => {
    const printed = await onDisk(
      "64k",
      `
    import { outputTo } from ${OUTPUT};
    const output = outputTo("/mnt/log");
    fill();
    // 1 MiB of lines wait; 76 lines are dropped.
    for (let n = 0; n < 1100; n++) output.write(String(n).padStart(1023) + "\\n");
    free();
    let read = "";
    for (let round = 0; round < 200 && !read.includes("not written"); round++) {
      read += readFileSync("/mnt/log", "utf8");
      truncateSync("/mnt/log", 0);
      output.write("");
      await sleep(5);
    }
    const lines = read.trimEnd().split("\\n").map((line) => line.trim());
    console.log(lines.length, lines[0], lines[1023], lines.at(-1));`,
    );
    expect(printed).toBe("1025 0 1023 76 lines were not written: no space left on the disk\n");
  },
);

it.skipIf(!isMountable)("writes the waiting lines by itself when space is back", async () => {
  const printed = await onDisk(
    "8m",
    `
    import { outputTo } from ${OUTPUT};
    const output = outputTo("/mnt/log");
    fill();
    for (let n = 0; n < 20; n++) output.write(String(n).padStart(4095) + "\\n");
    const before = readFileSync("/mnt/log", "utf8").length;
    free();
    await sleep(1_500);
    console.log(before < 81_920, readFileSync("/mnt/log", "utf8").length);`,
  );
  expect(printed).toBe("true 81920\n");
});

it.skipIf(!isMountable)("keeps a process with stdout in a file on a full disk, and its console", async () => {
  const printed = await onDisk(
    "1m",
    `
    import { keepOutput } from ${OUTPUT};
    keepOutput();
    fill();
    for (let n = 0; n < 3; n++) { console.log("line", n); await sleep(20); }
    free();
    console.log("last");`,
    "> /mnt/out && cat /mnt/out",
  );
  expect(printed).toBe("line 0\nline 1\nline 2\nlast\n");
});

it("keeps a process that logs to a full disk", async () => {
  const program = `
    import { logger } from ${LOG};
    const log = logger("broker");
    for (let n = 0; n < 3; n++) { log.info("line"); await new Promise((resolve) => setTimeout(resolve, 20)); }
    process.exit(7);`;
  const args = ["-c", `exec "$0" --input-type=module -e "$1" 2> /dev/full`, process.execPath, program];
  const env = { ...process.env, SLUICE_LOG_LEVEL: "info" };
  await expect(execute("sh", args, { env })).rejects.toMatchObject({ code: 7 });
});
