/** Many open event streams of one portal: what they cost it, and how soon an update is with all of them. */
import { readFile } from "node:fs/promises";
import { Agent, type ClientRequest, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

/** Resident memory of a process, MiB. */
export async function residentMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
}

type Options = {
  url: string;
  /** Cookies of the people who share the streams evenly, because one person may have few. */
  cookies: readonly string[];
  count: number;
  pid: number;
  /** Has the portal collect its garbage: what a thousand requests have left behind is no part of a stream. */
  collect: () => Promise<void>;
  update: () => Promise<void>;
};

/** Of the portal's memory only what streams take counts, not the code that the first of them loads. */
const WARM_UP = 50;

/** Opens `count` streams after a few that close again, and tells five updates through all; the slowest counts. */
export async function measureStreams(options: Options): Promise<Record<string, number>> {
  await hold({ ...options, count: WARM_UP });
  await sleep(1000);
  return await hold(options);
}

async function hold({ url, cookies, count, pid, collect, update }: Options): Promise<Record<string, number>> {
  await collect();
  const before = await residentMb(pid);
  const agent = new Agent({ maxSockets: Number.POSITIVE_INFINITY });
  const open: ClientRequest[] = [];
  let heard = 0;
  let wake: () => void = () => undefined;
  const all = () =>
    new Promise<void>((resolve) => {
      wake = resolve;
    });
  try {
    for (let at = 0; at < count; at += 50) {
      await Promise.all(
        Array.from({ length: Math.min(50, count - at) }, async (_, index) => {
          const cookie = cookies[(at + index) % cookies.length];
          const stream = request(`${url}/api/v1/live?topics=workspace`, { agent, headers: { cookie } });
          open.push(stream);
          await new Promise<void>((resolve, reject) => {
            stream.once("error", reject);
            stream.once("response", (response) => {
              if (response.statusCode !== 200) return reject(new Error(`a stream answered ${response.statusCode}`));
              let first = true;
              response.on("data", (chunk: Buffer) => {
                if (first) {
                  first = false;
                  resolve();
                }
                if (!chunk.includes("data:")) return;
                heard += 1;
                if (heard === count) wake();
              });
              response.on("error", () => undefined);
            });
            stream.end();
          });
          stream.on("error", () => undefined);
        }),
      );
    }
    const times: number[] = [];
    for (let round = 0; round < 5; round++) {
      heard = 0;
      const done = all();
      const began = performance.now();
      await update();
      await Promise.race([done, sleep(30_000)]);
      if (heard !== count) throw new Error(`an update reached ${heard} of ${count} streams`);
      times.push(performance.now() - began);
      await sleep(500);
    }
    await collect();
    return { streams_mb: (await residentMb(pid)) - before, update_ms: Math.max(...times) };
  } finally {
    for (const stream of open) stream.destroy();
    agent.destroy();
  }
}
