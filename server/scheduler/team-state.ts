/** What one team holds while a round goes through the queue, and which of its requests hold up others of the team. */
import type { Holding, Quota, Waiting } from "./types.ts";

export class TeamState {
  readonly quota: Quota;
  /** What is guaranteed with the devices that are there now. */
  readonly guaranteed: number;
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
  /** The first request beyond the guarantee, and what it will take, while claims are judged. */
  pending: { request: Waiting; milli: number } | undefined;

  constructor(quota: Quota, guaranteed: number) {
    this.quota = quota;
    this.guaranteed = guaranteed;
  }

  add(holding: Pick<Holding, "userId" | "milli" | "borrowed">): void {
    this.used += holding.milli;
    if (!holding.borrowed) this.inside += holding.milli;
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
    return this.usedBy(userId) + this.#reservedBy(userId) + milli > personMilli ? ahead : undefined;
  }

  #reservedBy(userId: string): number {
    let sum = 0;
    for (const milli of this.#reservedOf.get(userId)?.values() ?? []) sum += milli;
    return sum;
  }

  /** Whether this much more stays inside the guarantee, with what is reserved for those ahead. */
  isClaim(milli: number): boolean {
    return this.used + this.reserved + milli <= this.guaranteed;
  }

  /** The most that a lease of this request may be charged, with what is left to those ahead. */
  headroom(request: Pick<Waiting, "userId" | "guaranteedOnly">): number {
    const { limitMilli, personMilli = Number.POSITIVE_INFINITY } = this.quota;
    const { userId } = request;
    const byPerson = personMilli - this.usedBy(userId) - this.#reservedBy(userId);
    const byGuarantee = request.guaranteedOnly ? this.guaranteed - this.inside : Number.POSITIVE_INFINITY;
    const byClaim =
      this.firstClaim === undefined ? Number.POSITIVE_INFINITY : this.guaranteed - this.used - this.reserved;
    return Math.min(limitMilli - this.used - this.reserved, byPerson, byGuarantee, byClaim);
  }

  usedBy(userId: string): number {
    return this.people.get(userId) ?? 0;
  }

  /**
   * How much of the surplus it has had: what it borrows now, and what it borrowed of late. Compared with others' by
   * cross multiplication with the weights, so that it stays whole.
   */
  surplus(): { had: number; weight: number } {
    const { recentMilli = 0, weight = 1 } = this.quota;
    return { had: Math.max(0, this.used - this.guaranteed) + recentMilli, weight: Math.max(1, weight) };
  }
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
