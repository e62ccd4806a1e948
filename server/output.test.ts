/** Output on a small disk that fills up and becomes free again, and in files of a limited size. */
import { execFile, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { outputTo } from "./output.ts";

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

describe("an output with rotation", () => {
  const rotation = { maxBytes: 1000, earlier: 2 };
  const noted = (from: number, to: number) => {
    const lines = Array.from({ length: to - from }, (_, at) => String(from + at).padStart(99));
    return lines.map((line) => `${line}\n`);
  };
  const logFile = () => {
    const folder = mkdtempSync(path.join(tmpdir(), "sluice-output-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    return { folder, file: path.join(folder, "log") };
  };

  it("keeps the last lines in a limited number of files of limited size", () => {
    const { folder, file } = logFile();
    const output = outputTo(file, undefined, rotation);
    for (const line of noted(0, 54)) output.write(line);
    expect(readdirSync(folder).sort()).toEqual(["log", "log.1", "log.2"]);
    const texts = ["log.2", "log.1", "log"].map((name) => readFileSync(path.join(folder, name), "utf8"));
    expect(texts.map(({ length }) => length)).toEqual([1000, 1000, 400]);
    expect(texts.join("")).toBe(noted(30, 54).join(""));
    output.end();
  });

  it("renames a file that was too large before", () => {
    const { file } = logFile();
    writeFileSync(file, "x".repeat(5000));
    const output = outputTo(file, undefined, rotation);
    output.write("first\n");
    expect(statSync(`${file}.1`).size).toBe(5000);
    expect(readFileSync(file, "utf8")).toBe("first\n");
    output.end();
  });

  it("makes the file again when somebody has renamed it", () => {
    const { folder, file } = logFile();
    const output = outputTo(file, undefined, rotation);
    for (const line of noted(0, 5)) output.write(line);
    renameSync(file, `${file}.taken`);
    for (const line of noted(5, 15)) output.write(line);
    expect(readdirSync(folder).sort()).toEqual(["log", "log.taken"]);
    expect(readFileSync(`${file}.taken`, "utf8") + readFileSync(file, "utf8")).toBe(noted(0, 15).join(""));
    output.end();
  });

  it.skipIf(!isMountable)("loses no line where a full disk takes none for a while", async () => {
    const printed = await onDisk(
      "256k",
      `
      import { outputTo } from ${OUTPUT};
      const output = outputTo("/mnt/log", undefined, { maxBytes: 50_000, earlier: 2 });
      const write = (from, to) => { for (let n = from; n < to; n++) output.write(String(n).padStart(999) + "\\n"); };
      write(0, 20);
      fill();
      write(20, 90);
      free();
      await sleep(1_500);
      write(90, 100);
      const text = ["log.1", "log"].map((name) => readFileSync("/mnt/" + name, "utf8")).join("");
      const numbers = text.trim().split("\\n").map(Number);
      console.log(numbers.length, numbers.every((number, at) => number === at));`,
    );
    expect(printed).toBe("100 true\n");
  });
});
