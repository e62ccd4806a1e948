import { PassThrough, Readable } from "node:stream";
import { expect, it } from "vitest";
import { linesOf, runLines } from "./processes.ts";

async function all(...parts: string[]): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of linesOf(Readable.from(parts.map((part) => Buffer.from(part))))) lines.push(line);
  return lines;
}

it("reads lines with any line end, also across parts and without a last one", async () => {
  expect(await all("one\ntw", "o\r\nthree\rfo", "ur")).toEqual(["one", "two", "three", "four"]);
  expect(await all("one\r", "\ntwo\r", "three\n", "\n")).toEqual(["one", "two", "three", ""]);
  expect(await all("")).toEqual([]);
});

it("hands over a long line in pieces of 16 Ki characters", async () => {
  const long = "x".repeat(40_000);
  const lines = await all(`${long}\n`, "end");
  expect(lines.map(({ length }) => length)).toEqual([16_384, 16_384, 7_232, 3]);
  expect(await all(long)).toEqual(lines.slice(0, 3));
});

it("keeps one piece of a line without end", async () => {
  const stream = new PassThrough();
  const lines = linesOf(stream);
  stream.write("x".repeat(16_384));
  for (let part = 0; part < 64; part++) {
    const read = lines.next();
    stream.write("x".repeat(16_384));
    expect((await read).value).toHaveLength(16_384);
  }
  stream.end();
});

it("outlives a program that prints a line of 64 MiB", { timeout: 30_000 }, async () => {
  let longest = 0;
  const kept = await runLines("sh", ["-c", "head -c 67108864 /dev/zero | tr '\\0' x"], {
    onLine: (line) => {
      longest = Math.max(longest, line.length);
    },
  });
  expect(longest).toBe(16_384);
  expect(kept.join("").length).toBeLessThan(4 * 1024 * 1024);
});
