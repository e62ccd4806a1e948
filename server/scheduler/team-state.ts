/** What one team holds while a round goes through the queue, and which of its requests hold up others of the team. */
import { type Promises, promisesNow } from "./share.ts";
import type { Holding, Quota, Waiting, World } from "./types.ts";

/** What counts as taken: by all of the team, and by one person. */
type Count = { all: () => number; of: (userId: string) => number };

type Surplus = { had: number; weight: number };

const NOBODY: ReadonlyMap<string, number> = new Map();

export class TeamState {
  readonly quota: Quota;
  /** What is guaranteed with the devices that are there now. */
  readonly guaranteed: number;
  /** What is reserved for single persons: a part of the guarantee and of the limit that only they may use. */
  readonly #own: ReadonlyMap<string, number>;
  #ownInAll = 0;
  readonly #insideOf = new Map<string, number>();
  /** All that it holds, and the part granted inside the guarantee. */
  used = 0;
  inside = 0;
  readonly people = new Map<string, number>();
  /** What requests that wait for a device will take: those behind leave it to them. */
  reserved = 0;
  readonly #reservedOf = new Map<string, Map<string, number>>();
  /** First requests that wait: for any device, for a device inside the guarantee, for the limit, for the guarantee. */
  first: string | undefined;
  firstClaim: string | undefined;
  firstForLimit: string | undefined;
  firstForGuarantee: string | undefined;
  readonly firstOfPerson = new Map<string, string>();
  /** Until it changes: need is compared often. */
  #surplus: Surplus | undefined;
  /** The first request beyond the guarantee, and what it will take, while claims are judged. */
  pending: { request: Waiting; milli: number } | undefined;

  constructor(quota: Quota, guaranteed: number, own: ReadonlyMap<string, number> = NOBODY) {
    this.quota = quota;
    this.guaranteed = guaranteed;
    this.#own = own;
    for (const milli of own.values()) this.#ownInAll += milli;
  }

  add(holding: Pick<Holding, "userId" | "milli" | "borrowed">): void {
    this.#surplus = undefined;
    this.used += holding.milli;
    if (!holding.borrowed) {
      this.inside += holding.milli;
      this.#insideOf.set(holding.userId, (this.#insideOf.get(holding.userId) ?? 0) + holding.milli);
    }
    this.people.set(holding.userId, (this.people.get(holding.userId) ?? 0) + holding.milli);
  }

  /** It holds up nobody of its team for the quota's sake. */
  forget({ requestId, userId }: Pick<Waiting, "requestId" | "userId">): void {
    if (this.firstForLimit === requestId) this.firstForLimit = undefined;
    if (this.firstForGuarantee === requestId) this.firstForGuarantee = undefined;
    if (this.firstOfPerson.get(userId) === requestId) this.firstOfPerson.delete(userId);
  }

  /** Those behind leave this much to it. */
  reserve({ requestId, userId }: Pick<Waiting, "requestId" | "userId">, milli: number): void {
    this.reserved += milli;
    const known = this.#reservedOf.get(userId);
    if (known === undefined) this.#reservedOf.set(userId, new Map([[requestId, milli]]));
    else known.set(requestId, milli);
  }

  /** Whether it is the one for whose sake others of its team wait, or leave something. */
  isHeldUpBy(requestId: string, userId: string): boolean {
    return (
      this.first === requestId ||
      this.firstClaim === requestId ||
      this.firstForLimit === requestId ||
      this.firstForGuarantee === requestId ||
      this.firstOfPerson.get(userId) === requestId ||
      this.pending?.request.requestId === requestId ||
      (this.#reservedOf.get(userId)?.has(requestId) ?? false)
    );
  }

  /** Its turn has come; whether anything was reserved for it. */
  unreserve({ requestId, userId }: Pick<Waiting, "requestId" | "userId">): boolean {
    const milli = this.#reservedOf.get(userId)?.get(requestId);
    if (milli === undefined) return false;
    this.reserved -= milli;
    this.#reservedOf.get(userId)?.delete(requestId);
    return true;
  }

  /** The person's own request that needs what is left below the ceiling. */
  aheadOfPerson(userId: string, milli: number): string | undefined {
    const { personMilli } = this.quota;
    const [ahead] = this.#reservedOf.get(userId)?.keys() ?? [];
    if (personMilli === undefined || ahead === undefined) return undefined;
    return this.heldOrAskedBy(userId) + milli > personMilli ? ahead : undefined;
  }

  /** The first for which something is set aside, or the first that waits for any device. */
  aheadOfTeam(): string | undefined {
    if (this.first !== undefined) return this.first;
    for (const requests of this.#reservedOf.values()) for (const requestId of requests.keys()) return requestId;
    return undefined;
  }

  /** Requests for which something is set aside, and how much. */
  *asked(): Generator<[request: Pick<Waiting, "requestId" | "userId">, milli: number]> {
    for (const [userId, requests] of this.#reservedOf)
      for (const [requestId, milli] of requests) yield [{ requestId, userId }, milli];
  }

  #reservedBy(userId: string): number {
    let sum = 0;
    for (const milli of this.#reservedOf.get(userId)?.values() ?? []) sum += milli;
    return sum;
  }

  /** Whether this much more for a person stays inside the guarantee, with what is left to those ahead. */
  isClaim({ userId }: Pick<Waiting, "userId">, milli: number): boolean {
    return milli <= this.leftInside(userId);
  }

  /** Whether it takes nothing but what is reserved for its own person: then nobody of the team is ahead of it. */
  isOwn({ userId }: Pick<Waiting, "userId">, milli: number): boolean {
    return milli <= this.ownLeft(userId);
  }

  /** What of a person's reservations is neither held nor set aside for a request of theirs. */
  ownLeft(userId: string): number {
    return this.#own.size === 0 ? 0 : this.#ownLeft(userId, this.#heldOrAsked);
  }

  /** What a person may still take of the guarantee, beside what is left to those ahead. */
  leftInside(userId: string): number {
    return this.#left(userId, this.guaranteed, this.#heldOrAsked);
  }

  /** What a person may still take of the guarantee as things stand, whoever waits. */
  leftInsideNow(userId: string): number {
    return this.#left(userId, this.guaranteed, this.#held);
  }

  /** What a person may still take below the limit, beside what is left to those ahead. */
  leftBelowLimit(userId: string): number {
    const { limitMilli } = this.quota;
    return Math.min(this.#left(userId, limitMilli, this.#heldOrAsked), limitMilli - this.used - this.reserved);
  }

  /** What a person may still take below the limit as things stand, whoever waits. */
  leftBelowLimitNow(userId: string): number {
    const { limitMilli } = this.quota;
    return Math.min(this.#left(userId, limitMilli, this.#held), limitMilli - this.used);
  }

  /** What a person may still take with `--guaranteed`: only what was granted inside the guarantee counts. */
  leftForGuaranteedOnly(userId: string): number {
    return this.#left(userId, this.guaranteed, this.#granted);
  }

  /** What the team holds and has set aside, without what is reserved for single persons. */
  takenInCommon(): number {
    return this.#takenInCommon(this.#heldOrAsked);
  }

  /** What a person holds, and what is set aside for requests of theirs. */
  heldOrAskedBy(userId: string): number {
    return this.#heldOrAsked.of(userId);
  }

  readonly #held: Count = { all: () => this.used, of: (userId) => this.usedBy(userId) };
  readonly #heldOrAsked: Count = {
    all: () => this.used + this.reserved,
    of: (userId) => this.usedBy(userId) + this.#reservedBy(userId),
  };
  readonly #granted: Count = { all: () => this.inside, of: (userId) => this.#insideOf.get(userId) ?? 0 };

  #left(userId: string, total: number, count: Count): number {
    return this.#ownLeft(userId, count) + Math.max(0, total - this.#ownInAll - this.#takenInCommon(count));
  }

  #ownLeft(userId: string, count: Count): number {
    const own = this.#own.get(userId);
    return own === undefined ? 0 : Math.max(0, own - count.of(userId));
  }

  #takenInCommon(count: Count): number {
    let taken = count.all();
    for (const [userId, milli] of this.#own) taken -= Math.min(milli, count.of(userId));
    return taken;
  }

  /** The quota as it is for one person: without what is reserved for others. */
  quotaOf(userId: string): Quota {
    let others = 0;
    for (const [person, milli] of this.#own) if (person !== userId) others += milli;
    if (others === 0) return this.quota;
    const { guaranteedMilli, limitMilli } = this.quota;
    return { ...this.quota, guaranteedMilli: guaranteedMilli - others, limitMilli: limitMilli - others };
  }

  /** The most that a lease of this request may be charged, with what is left to those ahead. */
  headroom(request: Pick<Waiting, "userId" | "guaranteedOnly">): number {
    const { personMilli = Number.POSITIVE_INFINITY } = this.quota;
    const { userId } = request;
    const byPerson = personMilli - this.heldOrAskedBy(userId);
    const byGuarantee = request.guaranteedOnly ? this.leftForGuaranteedOnly(userId) : Number.POSITIVE_INFINITY;
    const byClaim = this.firstClaim === undefined ? Number.POSITIVE_INFINITY : this.leftInside(userId);
    return Math.min(this.leftBelowLimit(userId), byPerson, byGuarantee, byClaim);
  }

  usedBy(userId: string): number {
    return this.people.get(userId) ?? 0;
  }

  /**
   * How much of the surplus it has had: what it borrows now, and what it borrowed of late. Compared with others' by
   * cross multiplication with the weights, so that it stays whole.
   */
  surplus(): Surplus {
    this.#surplus ??= this.#countSurplus();
    return this.#surplus;
  }

  #countSurplus(): Surplus {
    const { recentMilli = 0, weight = 1 } = this.quota;
    const borrowed = this.#takenInCommon(this.#held) - (this.guaranteed - this.#ownInAll);
    return { had: Math.max(0, borrowed) + recentMilli, weight: Math.max(1, weight) };
  }
}

/** Every team that is promised something, with what it holds. */
export function teamsOf(holdings: readonly Holding[], { quotas, guarantees, own }: Promises): Map<string, TeamState> {
  const teams = new Map<string, TeamState>();
  for (const quota of quotas.values()) {
    const { teamId } = quota;
    teams.set(teamId, new TeamState(quota, guarantees.get(teamId) ?? 0, own.get(teamId)));
  }
  for (const holding of holdings) teams.get(holding.teamId)?.add(holding);
  return teams;
}

/** The quota as it holds for one person now: with what is reserved, and without what is reserved for others. */
export function quotaFor({ teamId, userId }: Pick<Waiting, "teamId" | "userId">, world: World): Quota | undefined {
  return teamsOf([], promisesNow(world)).get(teamId)?.quotaOf(userId);
}

/** Who gets spare GPUs first: higher priority, then less of the surplus for its weight. */
export function byNeed(a: TeamState, b: TeamState): number {
  const [one, other] = [a.surplus(), b.surplus()];
  return (b.quota.priority ?? 0) - (a.quota.priority ?? 0) || one.had * other.weight - other.had * one.weight;
}

/** Oldest first inside a rank; the id breaks ties the same way everywhere. */
export function byRank(a: Waiting, b: Waiting): number {
  return (b.rank ?? 0) - (a.rank ?? 0) || byAge(a, b);
}

export function byAge(a: Waiting, b: Waiting): number {
  return a.createdAt - b.createdAt || (a.requestId < b.requestId ? -1 : a.requestId > b.requestId ? 1 : 0);
}
