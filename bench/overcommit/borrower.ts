/** One client that borrows and gives back at random, and is told nothing of kills: it asks again, as the real one does. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { LeaseRequestAnswer } from "#server/contracts/lease.ts";

export type Tally = {
  decisions: number;
  granted: number;
  queued: number;
  refused: number;
  cancelled: number;
  ms: number[];
};

export const emptyTally = (): Tally => ({ decisions: 0, granted: 0, queued: 0, refused: 0, cancelled: 0, ms: [] });

export type BorrowerOptions = {
  brokerUrl: () => string;
  credential: string;
  index: number;
  tally: Tally;
  /** Tells the gpud of a lease that a client process has connected. */
  claim: (serverId: string, leaseId: string) => void;
};

const amounts = ["0.1", "0.25", "0.3", "0.5", "0.5", "0.5", "0.75", "1", "2G", "3G", "6G"];
const pick = <T>(from: readonly T[]): T => from[Math.floor(Math.random() * from.length)] as T;

/** Borrows until `until` (milliseconds since 1970). */
export async function borrow(options: BorrowerOptions, until: number): Promise<void> {
  for (let round = 1; Date.now() < until; round++) {
    await borrowOnce(options, round, until);
  }
}

async function borrowOnce(options: BorrowerOptions, round: number, until: number): Promise<void> {
  const { tally } = options;
  const requestId = randomUUID();
  const owner = { kind: "kernel", pid: options.index * 100_000 + round, startTime: 1, label: `bench-${options.index}` };
  const ask = { requestId, amount: pick(amounts), waitSeconds: 10, guaranteed: Math.random() < 0.1, owner };
  const started = performance.now();
  // One in ten asks twice at once with the same key, as a client does that thinks its first try was lost.
  const twice = Math.random() < 0.1;
  const [first] = await Promise.all([
    call<LeaseRequestAnswer>(options, "POST", "/v1/lease-requests", until, ask),
    twice ? call(options, "POST", "/v1/lease-requests", until, ask) : undefined,
  ]);
  if (first === undefined) return;
  tally.decisions += 1;
  tally.ms.push(performance.now() - started);
  let answer: LeaseRequestAnswer | undefined = first;
  if (answer.state === "queued") tally.queued += 1;
  while (answer?.state === "queued" && Date.now() < until) {
    if (Math.random() < 0.15) {
      tally.cancelled += 1;
      answer = await call<LeaseRequestAnswer>(options, "DELETE", `/v1/lease-requests/${requestId}`, until);
    } else {
      answer = await call<LeaseRequestAnswer>(options, "GET", `/v1/lease-requests/${requestId}?wait=1`, until);
    }
  }
  if (answer?.state === "refused") tally.refused += 1;
  if (answer?.state !== "granted") return;
  tally.granted += 1;
  const { id, serverId } = answer.lease;
  // One in ten never connects, and gives back all the same.
  if (Math.random() < 0.9) options.claim(serverId, id);
  await sleep(Math.random() * 150);
  await call(options, "DELETE", `/v1/leases/${id}?park=${Math.random() < 0.5 ? 1 : 0}`, until);
}

/** Asks until somebody answers; nothing when the answer is an error of ours (a lease that ended meanwhile). */
async function call<T>(
  options: BorrowerOptions,
  method: string,
  path: string,
  until: number,
  body?: unknown,
): Promise<T | undefined> {
  while (Date.now() < until + 5_000) {
    try {
      const response = await fetch(`${options.brokerUrl()}${path}`, {
        method,
        headers: { authorization: `Bearer ${options.credential}` },
        signal: AbortSignal.timeout(12_000),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const answer: unknown = await response.json();
      if (response.ok) return answer as T;
      if (response.status < 500) return undefined;
    } catch {
      // Killed under us: the next broker answers.
    }
    await sleep(50 + Math.random() * 100);
  }
  return undefined;
}
