/** Pages as an admin's browser asks for them: how long the server takes, and how much script the first visit loads. */
import { Agent, request } from "node:http";

type Answer = { status: number; ms: number; body: Buffer };
export type Ask = (path: string) => Promise<Answer>;

/** Asks one after the other over a connection that stays; the time is until the last byte. */
export function asker(url: string, cookie: string, also: Record<string, string> = {}): Ask {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  return async (path) => {
    const began = performance.now();
    return await new Promise((resolve, reject) => {
      const sent = request(
        new URL(path, url),
        { agent, headers: { cookie, accept: "text/html,*/*", "accept-encoding": "gzip", ...also } },
        (response) => {
          const chunks: Buffer[] = [];
          response.on("data", (chunk: Buffer) => chunks.push(chunk));
          response.on("error", reject);
          response.on("end", () =>
            resolve({ status: response.statusCode ?? 0, ms: performance.now() - began, body: Buffer.concat(chunks) }),
          );
        },
      );
      sent.on("error", reject);
      sent.end();
    });
  };
}

/** The 95th percentile of a path's times, after one that warms up. */
export async function p95(ask: Ask, path: string, rounds: number): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    const { status, ms } = await ask(path);
    if (status !== 200) throw new Error(`${path} answered ${status}`);
    if (round > 0) times.push(ms);
  }
  times.sort((a, b) => a - b);
  return times[Math.min(times.length - 1, Math.ceil(times.length * 0.95) - 1)] ?? 0;
}

/** Bytes of script, compressed, that a first visit of a page loads; `known` keeps what was asked for already. */
export async function scriptBytes(ask: Ask, html: string, known: Map<string, number>): Promise<number> {
  const files = new Set(
    [...html.matchAll(/<script[^>]+src="([^"]+\.js[^"]*)"[^>]*>/g)].flatMap(([tag, src]) =>
      // Browsers of the last years never load it.
      src === undefined || /nomodule/i.test(tag) ? [] : [src.replaceAll("&amp;", "&")],
    ),
  );
  let sum = 0;
  for (const file of files) {
    const size = known.get(file) ?? (await ask(file)).body.length;
    known.set(file, size);
    sum += size;
  }
  return sum;
}
