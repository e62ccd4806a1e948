/** Plays requests through the production scheduler in virtual time: `npm run simulate` and the what-if page alike. */
import { accrue, averageMilli, decayed } from "../decay.ts";
import { Heap } from "../heap.ts";
import { evaluate } from "../queue.ts";
import { groupOf, usedBy } from "../share.ts";
import type { Device, Holding, Placement, Policy, Quota, Waiting, World } from "../types.ts";
import type { Demand, Record } from "./demand.ts";

/** What holds at a time: quotas by their calendar, reservations, which kind of work is taken. */
export type Rules = Pick<World, "quotas" | "open" | "reservations">;

/** The pool that is tried. */
export type Setting = {
  gpuType: string;
  devices: Device[];
  policy: Policy;
  /** Virtual time begins here. */
  from: number;
  rules: (at: number) => Rules;
  /** When the rules are others than at this time; nothing: never. */
  rulesChangeAt?: (at: number) => number | undefined;
  /** Who is taken back asks again for the rest of the time. A log has that as a request of its own. */
  askAgain: boolean;
};

/** A replay that takes longer than whoever asked for it can wait: mostly because the queue only grows. */
export class TooMuchWork extends Error {
  override name = "TooMuchWork";
  readonly at: number;
  readonly queued: number;

  constructor(at: number, queued: number) {
    super(`${queued} requests wait at ${new Date(at).toISOString()}`);
    this.at = at;
    this.queued = queued;
  }
}

/**
 * `mostWork`: requests, leases and devices that all looks at the queue together may go through, about two microseconds
 * each. `onProgress` hears from time to time how much of the demand has come, 0 to 1.
 */
export type Bounds = { mostWork?: number; onProgress?: (part: number) => void };

const USAGE_MS = 60_000;
const PROGRESS_ROUNDS = 256;
const NEVER = Number.POSITIVE_INFINITY;

/** Plays everything until nobody waits and nothing is held any more. Deterministic. */
export function play(demands: readonly Demand[], setting: Setting, bounds: Bounds = {}): Record {
  return new Simulation(demands, setting, bounds).run();
}

class Simulation {
  readonly #record: Record = { fates: [], held: [], reclaimed: 0, endedAt: 0 };
  readonly #setting: Setting;
  readonly #bounds: Bounds;
  readonly #count: number;
  readonly #arrivals = new Heap<Demand>((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1));
  readonly #demands = new Map<string, Demand>();
  /** Requests that were served, or left out because the one before was. */
  readonly #served = new Set<string>();
  /** Lease → when it ends by itself. */
  readonly #ends = new Map<string, number>();
  readonly #usage = new Map<string, number>();
  #usageAt: number;
  #rulesUntil: number;
  #world: World;
  #again = 0;
  #rounds = 0;
  #work = 0;

  constructor(demands: readonly Demand[], setting: Setting, bounds: Bounds) {
    this.#setting = setting;
    this.#bounds = bounds;
    this.#count = demands.length;
    const { gpuType, devices, policy, from } = setting;
    this.#usageAt = from;
    this.#rulesUntil = from;
    const rules = setting.rules(from);
    this.#world = { gpuType, now: from, devices, holdings: [], queue: [], policy, ...rules };
    for (const demand of demands) this.#arrivals.push(demand);
  }

  run(): Record {
    this.#rulesUntil = this.#setting.rulesChangeAt?.(this.#world.now) ?? NEVER;
    for (let at = this.#next(); at !== undefined; at = this.#next()) {
      this.#world = { ...this.#world, now: Math.max(this.#world.now, at) };
      this.#followRules();
      this.#endWhatIsOver();
      this.#leave();
      this.#arrive();
      if (this.#world.queue.length > 0) this.#round();
    }
    // For these there never was a place, whatever ended.
    for (const { requestId } of this.#world.queue) this.#settle(requestId, "gave up");
    this.#bounds.onProgress?.(1);
    return { ...this.#record, endedAt: this.#world.now };
  }

  /** When something happens next: somebody asks or leaves, a lease or a notice is over, other rules hold. */
  #next(): number | undefined {
    const { holdings, queue } = this.#world;
    let next = this.#arrivals.peek()?.at ?? NEVER;
    for (const holding of holdings) {
      next = Math.min(next, this.#ends.get(groupOf(holding)) ?? NEVER, holding.notice?.releaseAt ?? NEVER);
    }
    for (const { requestId } of queue) next = Math.min(next, this.#leavesAt(requestId));
    // Without anybody who waits or comes, the rules may change for ever.
    if (queue.length > 0 && this.#rulesUntil < next) next = this.#lastRules() ? next : this.#rulesUntil;
    return next === NEVER ? undefined : next;
  }

  /** Who waits in vain, as no calendar ever lets them in, does so for two weeks after everything else is over. */
  #lastRules(): boolean {
    const over = this.#arrivals.peek() === undefined && this.#world.holdings.length === 0;
    const newest = Math.max(...this.#world.queue.map(({ createdAt }) => createdAt));
    return over && this.#rulesUntil > newest + 14 * 24 * 3_600_000;
  }

  #leavesAt(requestId: string): number {
    const demand = this.#demands.get(requestId);
    return demand?.patienceMs === undefined ? NEVER : demand.createdAt + demand.patienceMs;
  }

  #followRules(): void {
    const { now } = this.#world;
    const change = now >= this.#rulesUntil;
    if (change) {
      this.#world = { ...this.#world, ...this.#setting.rules(now) };
      this.#rulesUntil = this.#setting.rulesChangeAt?.(now) ?? NEVER;
    }
    if (change || now - this.#usageAt >= USAGE_MS) this.#settleUsage(now - ((now - this.#usageAt) % 1000));
  }

  /** As the broker does once a minute: what is borrowed counts as use of the recent past. */
  #settleUsage(at: number): void {
    const quotas = new Map<string, Quota>();
    for (const [teamId, quota] of this.#world.quotas) {
      const before = this.#usage.get(teamId) ?? 0;
      const borrowed = Math.max(0, usedBy(teamId, this.#world) - quota.guaranteedMilli);
      const amount = accrue(before, borrowed, at - this.#usageAt);
      this.#usage.set(teamId, amount);
      quotas.set(teamId, { ...quota, recentMilli: averageMilli(decayed(amount, this.#world.now - at)) });
    }
    this.#usageAt = at;
    this.#world = { ...this.#world, quotas };
  }

  #arrive(): void {
    const { now } = this.#world;
    const queue = [...this.#world.queue];
    for (let top = this.#arrivals.peek(); top !== undefined && top.at <= now; top = this.#arrivals.peek()) {
      this.#arrivals.pop();
      if (top.retryOf !== undefined && this.#served.has(top.retryOf)) {
        this.#served.add(top.id);
        continue;
      }
      this.#demands.set(top.id, top);
      queue.push(waitingOf(top));
    }
    this.#world = { ...this.#world, queue };
  }

  /** Those whose patience is over. */
  #leave(): void {
    const { now, queue } = this.#world;
    const gone = queue.filter(({ requestId }) => this.#leavesAt(requestId) <= now);
    if (gone.length === 0) return;
    for (const { requestId } of gone) {
      // Who does not wait at all is refused, as the broker does.
      this.#settle(requestId, this.#demands.get(requestId)?.patienceMs === 0 ? "refused" : "gave up");
    }
    this.#world = { ...this.#world, queue: queue.filter((waiting) => !gone.includes(waiting)) };
  }

  #settle(requestId: string, how: Record["fates"][number]["how"]): void {
    const demand = this.#demands.get(requestId);
    if (demand === undefined) return;
    if (how === "granted") this.#served.add(requestId);
    else this.#demands.delete(requestId);
    if (demand.carried) return;
    const { teamId, milli, createdAt } = demand;
    this.#record.fates.push({ teamId, milli, from: createdAt, to: this.#world.now, how });
  }

  #endWhatIsOver(): void {
    const { now, holdings } = this.#world;
    const isOver = (holding: Holding) =>
      (this.#ends.get(groupOf(holding)) ?? now) <= now || (holding.notice?.releaseAt ?? NEVER) <= now;
    const gone = holdings.filter(isOver);
    if (gone.length === 0) return;
    for (const { teamId, milli, grantedAt } of gone) {
      this.#record.held.push({ teamId, milli, from: grantedAt, to: now });
    }
    for (const id of new Set(gone.map(groupOf))) this.#end(id, now);
    this.#world = { ...this.#world, holdings: holdings.filter((holding) => !isOver(holding)) };
  }

  #end(id: string, now: number): void {
    const left = (this.#ends.get(id) ?? now) - now;
    const demand = this.#demands.get(id);
    this.#ends.delete(id);
    this.#demands.delete(id);
    if (left <= 0 || demand === undefined) return;
    this.#record.reclaimed += 1;
    if (!this.#setting.askAgain) return;
    this.#again += 1;
    const times = { at: now, createdAt: now, holdMs: left, lengthMs: left };
    this.#arrivals.push({ ...demand, ...times, id: `${id}+${this.#again}` });
  }

  #round(): void {
    this.#rounds += 1;
    const { queue: waits, holdings: held, devices } = this.#world;
    this.#work += waits.length + held.length + devices.length;
    if (this.#work > (this.#bounds.mostWork ?? NEVER)) throw new TooMuchWork(this.#world.now, waits.length);
    if (this.#rounds % PROGRESS_ROUNDS === 0) this.#bounds.onProgress?.(1 - this.#arrivals.size / this.#count);
    const round = evaluate(this.#world);
    const told = new Map(round.notices.map(({ leaseId, notice }) => [leaseId, notice]));
    const kept = new Map(round.kept.map(({ requestId, gpuIds }) => [requestId, gpuIds]));
    const left = new Set<string>();
    const holdings = this.#world.holdings.map((holding): Holding => {
      const id = groupOf(holding);
      const notice = round.withdrawn.includes(id) ? undefined : (told.get(id) ?? holding.notice);
      return notice === holding.notice ? holding : { ...holding, notice };
    });
    const requests = new Map(this.#world.queue.map((waiting) => [waiting.requestId, waiting]));
    for (const verdict of round.verdicts) {
      if (verdict.state === "queued") continue;
      left.add(verdict.requestId);
      const request = requests.get(verdict.requestId);
      if (verdict.state === "granted" && request) holdings.push(...this.#grant(request, verdict.placement));
      this.#settle(verdict.requestId, verdict.state);
    }
    const queue = this.#world.queue
      .filter((waiting) => !left.has(waiting.requestId))
      .map((waiting) => ({ ...waiting, keptGpuIds: kept.get(waiting.requestId) ?? waiting.keptGpuIds }));
    this.#world = { ...this.#world, holdings, queue };
  }

  #grant(request: Waiting, placement: Placement): Holding[] {
    const { now } = this.#world;
    const { requestId, teamId, userId, who, guaranteedOnly, lengthMs } = request;
    this.#ends.set(requestId, now + (this.#demands.get(requestId)?.holdMs ?? lengthMs));
    const times = { grantedAt: now, expiresAt: now + lengthMs, lastWorkAt: now };
    return placement.pieces.map((piece): Holding => {
      const leaseId = `${requestId}/${piece.gpuId}`;
      const { borrowed } = placement;
      return { ...piece, ...times, leaseId, groupId: requestId, teamId, userId, who, borrowed, guaranteedOnly };
    });
  }
}

function waitingOf({ id, userId, teamId, milli, memoryBytes, createdAt, lengthMs, ...rest }: Demand): Waiting {
  const { guaranteedOnly, rank, kind, maxDevices, needs } = rest;
  return {
    ...{ requestId: id, teamId, userId, who: userId, milli, memoryBytes, guaranteedOnly, createdAt, lengthMs },
    ...{ rank, kind, maxDevices, ...(needs === undefined ? {} : { needs }) },
  };
}
