/**
 * The pure scheduler with 1,000 devices, 100 teams and 10,000 queued requests: decisions a second over whole rounds
 * (every verdict counts as one decision), the explanation of one request, and a full plan of what to take back when
 * every team below its guarantee asks at once, and a whole round where room is made for fifty reservations as well.
 */
import { evaluate } from "#server/scheduler/queue.ts";
import { type Reader, seenBy } from "#server/scheduler/seen-by.ts";
import type { Device, Holding, Quota, Reservation, Waiting, World } from "#server/scheduler/types.ts";
import { explainRules } from "#server/scheduler/why.ts";

const DEVICES = 1_000;
const TEAMS = 100;
const QUEUED = 10_000;
const GIB = 1024 ** 3;
const HOUR = 3_600_000;
const ADMIN: Reader = { userId: "", teamIds: [], seesAll: true };

/**
 * Wall time says little on a machine that others use: the processor time of the same work stands beside it.
 */
export const targets = { decisions_per_s: ">= 20000", explain_ms: "<= 100", reclaim_ms: "<= 50" };

export async function run(): Promise<{ metrics: Record<string, number> }> {
  const empty = emptyPool();
  const queue = Array.from({ length: QUEUED }, (_, index) => request(index));
  const asked = { ...empty, queue };
  evaluate(asked);
  const rounds = 10;
  let decisions = 0;
  let grants = 0;
  let spent = 0;
  let spentCpu = 0;
  for (let round = 0; round < rounds; round++) {
    // Every other round starts empty and grants; the others decide on a full pool, where all wait.
    const world = round % 2 === 0 ? asked : fullPool(empty, queue);
    const began = performance.now();
    const worked = process.cpuUsage();
    const { verdicts } = evaluate(world);
    spent += performance.now() - began;
    spentCpu += cpuMs(worked);
    decisions += verdicts.length;
    grants += verdicts.filter((verdict) => verdict.state === "granted").length;
  }
  const full = fullPool(empty, queue);
  const waiting = evaluate(full).verdicts.filter((verdict) => verdict.state === "queued");
  const explained = [0, 0.5, 0.999].map((part) => {
    const { requestId } = waiting[Math.floor(part * waiting.length)] ?? { requestId: "" };
    return time(() => explainRules(requestId, seenBy(ADMIN, full), evaluate(full).verdicts));
  });
  const lent = lentPool(empty);
  evaluate(lent);
  const plan = evaluate(lent);
  const reclaim = time(() => evaluate(lent));
  const reserved = reservedPool(empty, queue);
  evaluate(reserved);
  const making = evaluate(reserved);
  const round = time(() => evaluate(reserved));
  return {
    metrics: {
      decisions_per_s: (decisions / spent) * 1000,
      explain_ms: Math.max(...explained.map((one) => one.wall)),
      reclaim_ms: reclaim.wall,
      cpu_decisions_per_s: (decisions / spentCpu) * 1000,
      cpu_explain_ms: Math.max(...explained.map((one) => one.cpu)),
      cpu_reclaim_ms: reclaim.cpu,
      granted: grants,
      reclaim_notices: plan.notices.length,
      reserved_round_ms: round.wall,
      cpu_reserved_round_ms: round.cpu,
      reserved_notices: making.notices.length,
      reclaim_claims: new Set(plan.notices.map(({ notice }) => notice.requestId)).size,
    },
  };
}

const cpuMs = (since: NodeJS.CpuUsage): number => {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1000;
};

/** The best of five, once by the clock and once by the processor. */
function time(work: () => unknown): { wall: number; cpu: number } {
  const took = [0, 1, 2, 3, 4].map(() => {
    const [began, worked] = [performance.now(), process.cpuUsage()];
    work();
    return { wall: performance.now() - began, cpu: cpuMs(worked) };
  });
  return { wall: Math.min(...took.map((one) => one.wall)), cpu: Math.min(...took.map((one) => one.cpu)) };
}

function emptyPool(): World {
  const devices = Array.from({ length: DEVICES }, (_, index): Device => {
    const server = Math.floor(index / 8);
    const place = { serverId: `s${server}`, serverName: `gpu-${String(server).padStart(3, "0")}` };
    return {
      id: `d${index}`,
      name: `h200-${index % 8}`,
      ...place,
      memoryBytes: 140 * GIB,
      state: "open",
      linkGroup: "0",
    };
  });
  const quotas = Array.from({ length: TEAMS }, (_, index): Quota => {
    const amounts = { guaranteedMilli: 8_000, limitMilli: 40_000, weight: 1 + (index % 3), priority: index % 2 };
    return { teamId: `t${index}`, teamName: `team-${index}`, ...amounts, idleMs: HOUR };
  });
  const byTeam = new Map(quotas.map((quota) => [quota.teamId, quota]));
  return { gpuType: "h200", now: 1e12, devices, holdings: [], quotas: byTeam, queue: [] };
}

/** Fractions, whole GPUs, amounts of memory, and a few of several GPUs. */
function request(index: number): Waiting {
  const shapes = [250, 500, 1000, 500, 0, 333, 2000, 750, 125, 1000];
  const milli = shapes[index % shapes.length] ?? 500;
  return {
    requestId: `r${String(index).padStart(5, "0")}`,
    teamId: `t${(index * 7) % TEAMS}`,
    userId: `u${index % 1000}`,
    who: `Person ${index % 1000}`,
    milli: milli === 0 ? 1 : milli,
    memoryBytes: milli === 0 ? (20 + (index % 5) * 10) * GIB : 0,
    guaranteedOnly: index % 20 === 0,
    createdAt: 1e12 - QUEUED + index,
    lengthMs: 4 * HOUR,
    maxDevices: 8,
  };
}

function fullPool(empty: World, queue: Waiting[]): World {
  const holdings = empty.devices.flatMap((device, index) =>
    [500, 500].map((milli, part): Holding => held(device, `t${(index + part * 50) % TEAMS}`, milli, index * 2 + part)),
  );
  return { ...empty, holdings, queue };
}

/** Half of the teams borrow everything; the others ask for their guarantee. */
function lentPool(empty: World): World {
  const holdings = empty.devices.flatMap((device, index) =>
    [250, 250, 250, 250].map((milli, part) =>
      held(device, `t${(index * 4 + part) % (TEAMS / 2)}`, milli, index * 4 + part),
    ),
  );
  const queue = Array.from({ length: TEAMS / 2 }, (_, index): Waiting => {
    return { ...request(index), teamId: `t${TEAMS / 2 + index}`, milli: 1000, memoryBytes: 0, guaranteedOnly: false };
  });
  return { ...empty, holdings, queue };
}

/** A full pool and a long queue, where a fifth is reserved in halves: some of it now, some of it soon. */
function reservedPool(empty: World, queue: Waiting[]): World {
  const reservations = Array.from({ length: TEAMS / 2 }, (_, index): Reservation => {
    const from = empty.now + (index % 4) * 30_000;
    return { id: `v${index}`, teamId: `t${index}`, milli: 4_000, unitMilli: 500, from, to: from + HOUR };
  });
  return { ...fullPool(empty, queue), reservations };
}

function held(device: Device, teamId: string, milli: number, index: number): Holding {
  const memoryBytes = (device.memoryBytes * milli) / 1000;
  const times = { grantedAt: 1e12 - HOUR, expiresAt: 1e12 + (index % 240) * 60_000 + 60_000, lastWorkAt: 1e12 };
  return {
    ...{ leaseId: `l${index}`, gpuId: device.id, teamId, userId: `u${index % 1000}`, milli, memoryBytes, ...times },
    ...{ borrowed: true, who: `Person ${index % 1000}` },
  };
}
