import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { eventStream } from "./event-stream.ts";

/** Yields its numbers as fast as they are taken, and counts how many were. */
function counting(count: number) {
  const seen = { given: 0, hasReturned: false, ends: 0 };
  async function* source() {
    try {
      for (let n = 1; n <= count; n++) {
        seen.given = n;
        yield { data: n };
      }
    } finally {
      seen.hasReturned = true;
    }
  }
  const leaving = new AbortController();
  const response = eventStream(source(), leaving.signal, () => {
    seen.ends += 1;
  });
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const read = async () => new TextDecoder().decode((await reader.read()).value);
  return { seen, leaving, reader, read };
}

it("asks its source for no more than the reader takes, and keeps its place until all is taken", async () => {
  const { seen, reader, read } = counting(100);
  await sleep(20);
  expect(seen.given).toBe(1);
  expect(await read()).toBe(": open\n\n");
  expect(await read()).toBe("data: 1\n\n");
  await sleep(20);
  expect(seen.given).toBeLessThanOrEqual(3);
  expect(seen.ends).toBe(0);
  for (let n = 2; n <= 100; n++) expect(await read()).toBe(`data: ${n}\n\n`);
  expect((await reader.read()).done).toBe(true);
  expect(seen).toEqual({ given: 100, hasReturned: true, ends: 1 });
});

it("ends once when the reader leaves, and when the signal aborts", async () => {
  for (const leave of ["reader", "signal"] as const) {
    const { seen, leaving, reader, read } = counting(100);
    await read();
    if (leave === "reader") await reader.cancel();
    else leaving.abort();
    await expect.poll(() => seen.ends).toBe(1);
    await expect.poll(() => seen.hasReturned).toBe(true);
    leaving.abort();
    expect(seen.ends).toBe(1);
    expect(seen.given).toBeLessThan(5);
  }
});

it("passes on the failure of its source, of the first event as well", async () => {
  for (const good of [0, 1]) {
    async function* source() {
      if (good > 0) yield { data: "good" };
      throw new Error("the source failed");
    }
    let ends = 0;
    const response = eventStream(source(), new AbortController().signal, () => {
      ends += 1;
    });
    await expect(response.text()).rejects.toThrow("the source failed");
    expect(ends).toBe(1);
  }
});
