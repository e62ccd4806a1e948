/**
 * The shell around the scheduler in virtual time, without a database: it applies rounds as the broker does. For
 * histories in tests; the decisions are the production scheduler's, or those of a deliberately broken one.
 */
import { isSpent, milliHours } from "../budget.ts";
import { leadOf } from "../notice.ts";
import { groupOf, keptReservations, leasesOf, reservationsAt } from "../share.ts";
import type { Holding, Placement, Round, Waiting, World } from "../types.ts";

export type Evaluate = (world: World) => Round;

/** What happened in one round, for the properties to judge. */
export type Happened = {
  before: World;
  round: Round;
  after: World;
  /** Requests all of whose leases to be taken have been released since the round before. */
  cleared: string[];
  /** Amounts so far, thousandths: granted as the scheduler's placements say, ended as the leases said that ended. */
  granted: number;
  ended: number;
};

export class Machine {
  world: World;
  readonly happened: Happened[] = [];
  readonly #evaluate: Evaluate;
  /** Puts what differs by the time into a world. */
  #inForce: (world: World) => World;
  granted = 0;
  ended = 0;
  /** Requests whose plan was overtaken by a change from outside. */
  readonly excused = new Set<string>();
  #cleared: string[] = [];
  #grants = 0;
  #promised: string | undefined;

  constructor(world: World, evaluate: Evaluate, inForce: (world: World) => World = (same) => same) {
    this.world = world;
    this.#evaluate = evaluate;
    this.#inForce = inForce;
  }

  /** From now on nothing differs by the time, and no budget is used up. */
  freeze(): void {
    this.#inForce = (same) => same;
    const quotas = [...this.world.quotas].map(
      ([teamId, { budget: _, calendar: __, ...rest }]) => [teamId, rest] as const,
    );
    this.change({ quotas: new Map(quotas) });
  }

  change(part: Partial<World>): void {
    this.world = { ...this.world, ...part };
  }

  /** One round, applied as the shell does. */
  round(): Happened {
    const before = this.#inForce(this.world);
    const promised = promisedIn(before);
    // It has changed: room that was being made for somebody may be another's now.
    if (promised !== (this.#promised ?? promised))
      for (const { requestId } of before.queue) this.excused.add(requestId);
    this.#promised = promised;
    const round = this.#evaluate(before);
    const left = new Set<string>();
    const holdings = [...before.holdings];
    for (const verdict of round.verdicts) {
      if (verdict.state === "queued") continue;
      left.add(verdict.requestId);
      const request = before.queue.find((one) => one.requestId === verdict.requestId);
      if (verdict.state === "granted" && request) holdings.push(...this.#grant(request, verdict.placement));
    }
    const told = new Map(round.notices.map((one) => [one.leaseId, one.notice]));
    const withdrawn = new Set(round.withdrawn);
    const kept = new Map(round.kept.map((one) => [one.requestId, one.gpuIds]));
    this.world = {
      ...before,
      holdings: holdings.map((holding) => {
        const notice = withdrawn.has(groupOf(holding)) ? undefined : (told.get(groupOf(holding)) ?? holding.notice);
        return { ...holding, notice };
      }),
      queue: before.queue
        .filter((one) => !left.has(one.requestId))
        .map((one) => (kept.has(one.requestId) ? { ...one, keptGpuIds: kept.get(one.requestId) } : one)),
    };
    const cleared = this.#cleared.filter((requestId) => !this.excused.has(requestId));
    const happened = { before, round, after: this.world, cleared, granted: this.granted, ended: this.ended };
    this.#cleared = [];
    this.happened.push(happened);
    return happened;
  }

  #grant(request: Waiting, placement: Placement) {
    this.#grants += 1;
    this.granted += placement.milli;
    const groupId = `${request.requestId}#${this.#grants}`;
    return placement.pieces.map((piece, index): Holding => {
      return {
        ...piece,
        leaseId: `${groupId}/${index}`,
        groupId,
        teamId: request.teamId,
        userId: request.userId,
        borrowed: placement.borrowed,
        guaranteedOnly: request.guaranteedOnly,
        grantedAt: this.world.now,
        expiresAt: this.world.now + request.lengthMs,
        who: request.who,
        lastWorkAt: this.world.now,
      };
    });
  }

  /** Ends a lease with all its parts; a lease that was told to go counts for its claimant. */
  end(leaseId: string): void {
    const gone = this.world.holdings.filter((holding) => groupOf(holding) === leaseId);
    for (const holding of gone) this.ended += holding.milli;
    const holdings = this.world.holdings.filter((holding) => groupOf(holding) !== leaseId);
    this.change({ holdings });
    const requestId = gone[0]?.notice?.requestId;
    if (requestId !== undefined && !holdings.some((holding) => holding.notice?.requestId === requestId)) {
      this.#cleared.push(requestId);
    }
  }

  /** Moves time on, stopping wherever a notice or a lease is over, and where a reservation begins. Tells who was taken back. */
  advance(to: number, onTaken: (lease: Holding) => void = () => undefined): void {
    for (;;) {
      const due = this.world.holdings.map((one) => Math.min(one.notice?.releaseAt ?? one.expiresAt, one.expiresAt));
      const next = Math.min(...due, ...this.#beginnings(), Number.POSITIVE_INFINITY);
      if (next > to) break;
      this.#pass(next);
      const over = leasesOf(this.world.holdings).filter(
        ({ first }) => Math.min(first.notice?.releaseAt ?? first.expiresAt, first.expiresAt) <= this.world.now,
      );
      for (const { id, first } of over) {
        this.end(id);
        if (first.notice !== undefined && first.notice.releaseAt <= this.world.now) onTaken(first);
      }
      this.round();
    }
    this.#pass(to);
    this.round();
  }

  /** When room begins to be kept for reservations, and when they begin, of what is ahead. */
  #beginnings(): number[] {
    const { reservations = [], now } = this.world;
    const lead = leadOf(this.world);
    return reservations.flatMap(({ from }) => [from - lead, from]).filter((at) => at > now);
  }

  /** Time passes, and budgets are used. */
  #pass(to: number): void {
    const { now, holdings, quotas } = this.world;
    if (to <= now) return;
    const used = [...quotas].map(([teamId, quota]) => {
      if (quota.budget === undefined) return [teamId, quota] as const;
      const held = holdings.reduce((sum, one) => sum + (one.teamId === teamId ? one.milli : 0), 0);
      const usedMilliHours = quota.budget.usedMilliHours + milliHours(held, to - now);
      return [teamId, { ...quota, budget: { ...quota.budget, usedMilliHours } }] as const;
    });
    this.change({ now: to, quotas: new Map(used) });
  }
}

/** All that decides about who may have what, beside who has it. */
function promisedIn(world: World): string {
  const quotas = [...world.quotas.values()].map(
    ({ guaranteedMilli, limitMilli, budget }) => `${guaranteedMilli}/${limitMilli}/${isSpent(budget, world.now)}`,
  );
  const reserved = [keptReservations(world), reservationsAt(world, world.now)].map((there) =>
    there.map(({ id }) => id).join("+"),
  );
  const stops = (world.stops ?? []).map(({ scope, subjectId }) => `${scope}/${subjectId}`);
  return [...reserved, ...quotas, ...stops, ...(world.open?.kinds ?? [])].join();
}
