/** Replays a trace through the production scheduler in virtual time. The what-if page asks the same. */
import { WHOLE } from "../amount.ts";
import { Heap } from "../heap.ts";
import { DEFAULT_POLICY } from "../notice.ts";
import { evaluate } from "../queue.ts";
import { groupOf } from "../share.ts";
import type { Device, Holding, Quota, Waiting, World } from "../types.ts";
import { type Outcome, outcomeOf } from "./outcome.ts";
import type { Asked } from "./trace.ts";

export type Pool = {
  gpus: number;
  gpusPerServer: number;
  memoryBytes: number;
  /** Of each team's even part of the pool, how much is guaranteed, percent. */
  guaranteedPercent: number;
  /** Price of a GPU-hour in millionths of the currency. */
  microPerGpuHour: number;
};

type Waited = { team: string; seconds: number };
/** What the outcome is computed from. */
export type Recorded = {
  waited: Waited[];
  refused: number;
  reclaimed: number;
  held: Map<string, number>;
  endedAt: number;
};

/** Plays the whole trace on a pool of this size. Who is taken back asks again for the rest of the time. */
export function simulate(trace: readonly Asked[], pool: Pool): Outcome {
  const simulation = new Simulation(trace, pool);
  simulation.run();
  return outcomeOf(simulation.record, pool, trace);
}

class Simulation {
  readonly record: Recorded = { waited: [], refused: 0, reclaimed: 0, held: new Map(), endedAt: 0 };
  readonly #trace: readonly Asked[];
  readonly #arrivals: Heap<{ at: number; asked: Asked; id: string }>;
  #world: World;
  readonly #asked = new Map<string, Asked>();
  /** Lease → when it ends by itself. */
  readonly #ends = new Map<string, number>();
  #again = 0;

  constructor(trace: readonly Asked[], pool: Pool) {
    this.#trace = trace;
    this.#arrivals = new Heap((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1));
    this.#world = worldOf(trace, pool);
  }

  run(): void {
    for (const [index, asked] of this.#trace.entries()) {
      this.#arrivals.push({ at: asked.at * 1000, asked, id: `r${String(index).padStart(9, "0")}` });
    }
    for (let at = this.#next(); at !== undefined; at = this.#next()) {
      this.#world = { ...this.#world, now: Math.max(this.#world.now, at) };
      this.#endWhatIsOver();
      this.#arrive();
      this.#round();
    }
    this.record.endedAt = this.#world.now;
  }

  /** When something happens next: somebody asks, a lease ends, or a notice is over. */
  #next(): number | undefined {
    let next = this.#arrivals.peek()?.at ?? Number.POSITIVE_INFINITY;
    for (const holding of this.#world.holdings) {
      next = Math.min(next, this.#ends.get(groupOf(holding)) ?? next, holding.notice?.releaseAt ?? next);
    }
    return next === Number.POSITIVE_INFINITY ? undefined : next;
  }

  #arrive(): void {
    const queue = [...this.#world.queue];
    for (let top = this.#arrivals.peek(); top !== undefined && top.at <= this.#world.now; top = this.#arrivals.peek()) {
      this.#arrivals.pop();
      this.#asked.set(top.id, top.asked);
      queue.push(waitingOf(top.id, top.asked, top.at));
    }
    this.#world = { ...this.#world, queue };
  }

  #endWhatIsOver(): void {
    const { now } = this.#world;
    const over = (holding: Holding) => {
      const ends = this.#ends.get(groupOf(holding)) ?? now;
      return ends <= now || (holding.notice?.releaseAt ?? Number.POSITIVE_INFINITY) <= now;
    };
    const gone = this.#world.holdings.filter(over);
    if (gone.length === 0) return;
    for (const holding of gone) this.#account(holding, now);
    for (const id of new Set(gone.map(groupOf))) this.#askAgain(id, now);
    this.#world = { ...this.#world, holdings: this.#world.holdings.filter((holding) => !over(holding)) };
  }

  #account(holding: Holding, now: number): void {
    const held = this.record.held.get(holding.teamId) ?? 0;
    this.record.held.set(holding.teamId, held + (holding.milli * (now - holding.grantedAt)) / 1000);
  }

  #askAgain(id: string, now: number): void {
    const left = Math.ceil(((this.#ends.get(id) ?? now) - now) / 1000);
    const asked = this.#asked.get(id);
    this.#ends.delete(id);
    if (left <= 0 || asked === undefined) return;
    this.record.reclaimed += 1;
    this.#again += 1;
    this.#arrivals.push({
      at: now,
      asked: { ...asked, at: now / 1000, holdSeconds: left },
      id: `${id}+${this.#again}`,
    });
  }

  #round(): void {
    const round = evaluate(this.#world);
    const told = new Map(round.notices.map(({ leaseId, notice }) => [leaseId, notice]));
    const kept = new Map(round.kept.map(({ requestId, gpuIds }) => [requestId, gpuIds]));
    const left = new Set<string>();
    const holdings = this.#world.holdings.map((holding): Holding => {
      const id = groupOf(holding);
      const notice = round.withdrawn.includes(id) ? undefined : (told.get(id) ?? holding.notice);
      return { ...holding, notice };
    });
    const requests = new Map(this.#world.queue.map((waiting) => [waiting.requestId, waiting]));
    for (const verdict of round.verdicts) {
      if (verdict.state === "queued") continue;
      left.add(verdict.requestId);
      const request = requests.get(verdict.requestId);
      if (verdict.state === "refused" || request === undefined) this.record.refused += 1;
      else holdings.push(...this.#grant(request, verdict.placement));
    }
    const queue = this.#world.queue
      .filter((waiting) => !left.has(waiting.requestId))
      .map((waiting) => ({ ...waiting, keptGpuIds: kept.get(waiting.requestId) ?? waiting.keptGpuIds }));
    this.#world = { ...this.#world, holdings, queue };
  }

  #grant(
    request: Waiting,
    placement: { borrowed: boolean; pieces: Pick<Holding, "gpuId" | "milli" | "memoryBytes">[] },
  ) {
    const { now } = this.#world;
    this.record.waited.push({ team: request.teamId, seconds: (now - request.createdAt) / 1000 });
    const expiresAt = now + request.lengthMs;
    this.#ends.set(request.requestId, expiresAt);
    return placement.pieces.map((piece): Holding => {
      const { requestId, teamId, userId, who } = request;
      const times = { grantedAt: now, expiresAt, lastWorkAt: now };
      const leaseId = `${requestId}/${piece.gpuId}`;
      return { ...piece, ...times, leaseId, groupId: requestId, teamId, userId, who, borrowed: placement.borrowed };
    });
  }
}

function waitingOf(id: string, asked: Asked, at: number): Waiting {
  const { team, person, milli, kind, holdSeconds } = asked;
  return {
    ...{ requestId: id, teamId: team, userId: person, who: person, milli, memoryBytes: 0, guaranteedOnly: false },
    ...{ createdAt: at, lengthMs: holdSeconds * 1000, kind, maxDevices: 64 },
  };
}

function worldOf(trace: readonly Asked[], pool: Pool): World {
  const teams = [...new Set(trace.map((asked) => asked.team))].sort();
  const devices = Array.from({ length: pool.gpus }, (_, index): Device => {
    const server = Math.floor(index / pool.gpusPerServer);
    const place = { serverId: `s${server}`, serverName: `gpu-${server}`, linkGroup: "0" };
    return { id: `d${index}`, name: `gpu-${index}`, ...place, memoryBytes: pool.memoryBytes, state: "open" };
  });
  const even = Math.floor((pool.gpus * WHOLE * pool.guaranteedPercent) / 100 / Math.max(1, teams.length));
  const quotas = teams.map((teamId): [string, Quota] => {
    const amounts = { guaranteedMilli: even, limitMilli: pool.gpus * WHOLE };
    return [teamId, { teamId, teamName: teamId, ...amounts }];
  });
  return { gpuType: "gpu", now: 0, devices, holdings: [], quotas: new Map(quotas), queue: [], policy: DEFAULT_POLICY };
}
