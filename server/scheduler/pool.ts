/**
 * The devices of one pass: what is left on them and for whom they are kept, who lies there and when that ends, who may
 * be taken back and for whom that is done already. It knows requests and leases, and nothing of the order of need.
 */
import { type CoTenancyOf, coTenancyIn, mayJoin } from "./allowed.ts";
import { byDevice, keep, keepSoonest, likelyEnd } from "./hold.ts";
import { PARK_MS, timesOf } from "./notice.ts";
import { type Asker, devicesOf, fits, mayLie, pieceOn, place } from "./placement.ts";
import { noticeFor, type Plan, planReclaim, type Reclaimable, type Releases, releaseOf } from "./reclaim.ts";
import { reservationIdOf, type Unit } from "./reservation.ts";
import { admits, type End, give, isKeptForOthers, leave, type Room, roomOf, take } from "./room.ts";
import { groupOf, type Lease, leasesOf, outsideGuarantee, type Promises, promisesAt } from "./share.ts";
import type { Holding, Piece, Quota, Round, Waiting, World } from "./types.ts";

/**
 * What a pass has found out about a request for which room is being made: it goes elsewhere, or other devices are kept
 * for it. Those who were judged before it must hear of that, so the pass begins again with it.
 */
export type Revision = { placed: readonly string[] } | { kept: readonly string[]; told: readonly string[] };

/**
 * Lease → the reservation for which it is known to go: it was told so in a round before, or a pass before has found it.
 * Others of its parts come where these make room, before anybody else is told.
 */
export type Reserved = ReadonlyMap<string, string>;

export class Pool {
  readonly #world: World;
  readonly #quotas: ReadonlyMap<string, Quota>;
  readonly #promises: Promises;
  /** In a fixed order, by which ties are broken. */
  readonly #rooms: Room[];
  readonly #roomById: Map<string, Room>;
  readonly policyOf: CoTenancyOf | undefined;
  readonly #releases: Releases;
  readonly #byDevice: Map<string, Holding[]>;
  readonly #held: readonly Lease[];
  /** Granted in this pass. */
  readonly #laid: Holding[] = [];
  /** Lease → the request it is taken for, in this pass or in a round before. */
  readonly #taken = new Map<string, string>();
  /** With when the room is due. */
  readonly #plans = new Map<string, Plan & { at: number }>();
  readonly #reserved: Reserved;
  /** Who comes where others make room, and when. */
  readonly #beside = new Map<string, number>();
  /** Parts of reservations for which room is made. */
  readonly #units = new Set<string>();
  /** What is kept for parts of reservations, and until when. */
  readonly #keptForUnits: KeptForUnit[] = [];
  /** Time → leases outside their team's guarantee then. */
  #outside = new Map<number, ReadonlyMap<string, Lease>>();
  /** Leases that are taken back for a reservation, and lie inside their team's guarantee until it begins. */
  readonly #insideUntil = new Map<string, number>();
  /** Rooms in the order in which the first lease on each ends, while nothing about that changes. */
  #byFirstEnd: readonly Room[] | undefined;
  /** Requests that have a device kept for them. */
  readonly #keeps = new Set<string>();
  /**
   * Shapes that found no device, and who has one kept that would do: rooms only shrink, so the next of the same shape
   * finds none either.
   */
  readonly #without = new Map<string, string | undefined>();
  /** Teams and shapes for which nothing can be taken back. */
  readonly #withoutPlan = new Set<string>();

  constructor(world: World, promises: Promises, reserved: Reserved = new Map()) {
    const { quotas } = promises;
    this.#world = world;
    this.#quotas = quotas;
    this.#promises = promises;
    this.policyOf = coTenancyIn(quotas);
    const notBefore = (leaseId: string) => this.#insideUntil.get(leaseId) ?? world.now;
    this.#releases = { now: world.now, timesOf: timesOf(world), notBefore };
    this.#roomById = roomOf(world.devices, world.holdings);
    this.#rooms = [...this.#roomById.values()].sort(byName);
    this.#byDevice = byDevice(world.holdings);
    this.#held = leasesOf(world.holdings);
    const told = this.#held.flatMap(({ id, first: { notice } }): [string, string][] =>
      notice === undefined ? [] : [[id, reservationIdOf(notice.requestId)]],
    );
    this.#reserved = new Map([...told, ...reserved]);
  }

  room(gpuId: string | undefined): Room | undefined {
    return gpuId === undefined ? undefined : this.#roomById.get(gpuId);
  }

  /** Whether a device is kept for it. */
  keeps(requestId: string): boolean {
    return this.#keeps.has(requestId);
  }

  /** What is held, with what was granted in this pass. */
  held(): Holding[] {
    return [...this.#world.holdings, ...this.#laid];
  }

  /** When there is room for it that is being made, for itself or beside another. */
  roomAt(requestId: string): number | undefined {
    return this.#plans.get(requestId)?.releaseAt ?? this.#beside.get(requestId);
  }

  planOf(requestId: string): Plan | undefined {
    return this.#plans.get(requestId);
  }

  /** Who is taken back for its sake. */
  toldFor(requestId: string): string[] {
    return [...this.#taken].flatMap(([id, claimant]) => (claimant === requestId ? [id] : []));
  }

  /** Who has a device kept on which a request of this shape, that found none, would fit. */
  heldFor(shape: string): string | undefined {
    return this.#without.get(shape);
  }

  /** Devices on which room is being made are kept before anybody is judged. */
  keepWhatIsKept(waiting: readonly Waiting[], revisions: ReadonlyMap<string, Revision>): void {
    const claimants = new Set(waiting.filter((one) => one.keptGpuIds?.length).map((one) => one.requestId));
    for (const { id, first } of this.#held) {
      const requestId = first.notice?.requestId;
      // Whoever was told for the sake of one that has left is free again.
      if (requestId === undefined || !claimants.has(requestId) || revisions.has(requestId)) continue;
      this.#taken.set(id, requestId);
    }
    for (const [requestId, revision] of revisions) {
      if ("told" in revision) for (const id of revision.told) this.#taken.set(id, requestId);
    }
    for (const request of waiting) {
      for (const gpuId of request.keptGpuIds ?? []) {
        const room = this.#roomById.get(gpuId);
        if (room === undefined) continue;
        const there = this.#byDevice.get(gpuId) ?? [];
        const told = there.filter((one) => !one.ending && this.#taken.get(groupOf(one)) === request.requestId);
        keep(request, room, { told, goes: there.filter(({ ending }) => ending) }, this.policyOf);
        this.#keeps.add(request.requestId);
      }
    }
  }

  /** The devices that are kept for it, when it fits there. */
  roomsMade(asker: Asker): Room[] | undefined {
    const { keptGpuIds = [] } = asker.request;
    const rooms = keptGpuIds.flatMap((gpuId) => this.#roomById.get(gpuId) ?? []).filter((room) => fits(asker, room));
    return rooms.length === devicesOf(asker.request) ? rooms : undefined;
  }

  /** What it will be charged on the devices that are kept for it: memory is charged by device. */
  chargeWhereKept(request: Waiting): number {
    return (request.keptGpuIds ?? []).reduce((sum, gpuId) => {
      const room = this.#roomById.get(gpuId);
      return room?.hold?.parts.has(request.requestId) ? sum + pieceOn(request, room).milli : sum;
    }, 0);
  }

  /** Devices for a request of this shape; nothing when it does not fit. */
  place(asker: Asker, shape: string): Room[] | undefined {
    if (this.#without.has(shape)) return undefined;
    const rooms = place(asker, this.#rooms);
    if (rooms === undefined) this.#without.set(shape, this.#heldFor(asker));
    return rooms;
  }

  /** Lays a request on these devices. Those judged later wait for its end too. */
  grant(request: Waiting, pieces: readonly Piece[], borrowed: boolean): void {
    for (const piece of pieces) {
      const room = this.#roomById.get(piece.gpuId);
      if (room) {
        take(room, { ...piece, teamId: request.teamId }, this.#world.now + request.lengthMs);
        room.ends = undefined;
        this.#byFirstEnd = undefined;
      }
      this.#lay(request, piece, borrowed);
    }
  }

  /** Takes room for nobody yet: a part of a reservation, made where it is missing. */
  keepUnit({ request, at, until, grantable }: Unit): void {
    const asker: Asker = { request, headroomMilli: Number.POSITIVE_INFINITY, policyOf: this.policyOf };
    // What is kept for reservations that will be over by then is kept for this one, too.
    const over = this.#keptForUnits.filter((one) => one.until <= at);
    for (const one of over) give(one.room, one);
    const rooms = place(asker, [...new Set(over.map(({ room }) => room))]) ?? place(asker, this.#rooms);
    for (const room of rooms ?? []) {
      const piece = { ...pieceOn(request, room), room, teamId: request.teamId, until };
      take(room, piece);
      share(piece, over);
      this.#keptForUnits.push(piece);
    }
    if (rooms === undefined) this.#makeForUnit(asker, at, { until, grantable });
    for (const one of over) take(one.room, one);
  }

  /** Who goes for the sake of reservations, when some of them were not known to before. */
  newlyReserved(): Reserved | undefined {
    const goes = [...this.#units].flatMap((unitId) =>
      (this.#plans.get(unitId)?.leaseIds ?? []).map((id): [string, string] => [id, reservationIdOf(unitId)]),
    );
    const isNew = goes.some(([id]) => !this.#reserved.has(id));
    return isNew ? new Map([...this.#reserved, ...goes]) : undefined;
  }

  #makeForUnit(asker: Asker, at: number, { until, grantable }: Pick<Unit, "until" | "grantable">): void {
    const { request } = asker;
    const shape = `${reservationIdOf(request.requestId)}/${request.milli}/${at}`;
    // What is free is kept for it whoever would be granted it, and what others leave; nobody else is taken back.
    const left = this.#leftBeside(asker, at);
    const plan = grantable ? this.makeRoom(asker, shape, at) : left && this.#comeBeside(asker, left);
    if (plan === undefined || !this.#plans.has(request.requestId)) return;
    this.#units.add(request.requestId);
    for (const { room } of plan.pieces)
      this.#keptForUnits.push({ ...pieceOn(request, room), room, teamId: request.teamId, until });
  }

  /**
   * What those leave beyond another's need who are told for its sake: place for one more, for whom nobody else is taken
   * back then. Of several the first to be there; what is made for later than `at` comes too late.
   */
  #leftBeside(asker: Asker, at: number): Left | undefined {
    const { request, headroomMilli } = asker;
    let best: Left | undefined;
    for (const room of devicesOf(request) > 1 ? [] : this.#rooms) {
      const { hold } = room;
      if (hold === undefined || hold.until !== undefined || hold.parts.has(request.requestId)) continue;
      const { milli, memoryBytes } = pieceOn(request, room);
      if (milli > headroomMilli || !admits(room, request) || !mayLie(asker, room)) continue;
      for (const [requestId, { left }] of hold.parts) {
        if (milli > left.milli || memoryBytes > left.memoryBytes || (this.#plans.get(requestId)?.at ?? 0) > at)
          continue;
        if (!this.#mayJoinThen(asker, room, requestId)) continue;
        const releaseAt = this.#releaseFor(requestId);
        if (best === undefined || releaseAt < best.releaseAt) best = { room, requestId, left, releaseAt };
      }
    }
    return best;
  }

  /** When those have gone who are told for a request's sake. */
  #releaseFor(requestId: string): number {
    const told = new Set(this.toldFor(requestId));
    const releases = this.#held.flatMap(({ id, first }) => (told.has(id) ? [releaseOf(first, this.#releases)] : []));
    return Math.max(this.#world.now, ...releases);
  }

  #comeBeside({ request }: Asker, { room, requestId, left, releaseAt }: Left): Plan {
    this.release(request);
    const { milli, memoryBytes } = pieceOn(request, room);
    left.milli -= milli;
    left.memoryBytes -= memoryBytes;
    this.#beside.set(request.requestId, releaseAt);
    return { pieces: [{ room, told: [], goes: [] }], leaseIds: this.toldFor(requestId), releaseAt };
  }

  /** Whether it may lie beside those who stay when those have gone who are told for another's sake. */
  #mayJoinThen({ request, policyOf }: Asker, room: Room, requestId: string): boolean {
    if (policyOf === undefined) return true;
    const leavingOf = new Map<string, number>();
    for (const holding of this.#byDevice.get(room.device.id) ?? []) {
      if (!holding.ending && this.#taken.get(groupOf(holding)) !== requestId) continue;
      leavingOf.set(holding.teamId, (leavingOf.get(holding.teamId) ?? 0) + 1);
    }
    return mayJoin(request.teamId, room, policyOf, leavingOf);
  }

  #lay(request: Waiting, piece: Piece, borrowed: boolean): void {
    const { requestId, teamId, userId, who, lengthMs, guaranteedOnly } = request;
    const { now } = this.#world;
    const times = { grantedAt: now, expiresAt: now + lengthMs, lastWorkAt: now };
    const holding: Holding = { ...piece, ...times, leaseId: requestId, teamId, userId, who, borrowed, guaranteedOnly };
    this.#laid.push(holding);
    const there = this.#byDevice.get(piece.gpuId);
    if (there === undefined) this.#byDevice.set(piece.gpuId, [holding]);
    else there.push(holding);
  }

  /**
   * Makes room for a claim: beside another where that leaves enough no later; else others are told, and the devices are
   * kept. Nothing when that would not help. For what is due later, those are taken back who lie outside their guarantee
   * then.
   */
  makeRoom(asker: Asker, shape: string, at: number = this.#world.now): Plan | undefined {
    const { requestId, keptGpuIds } = asker.request;
    // Who has room made already keeps to that, whatever a later one leaves.
    const left = keptGpuIds?.length ? undefined : this.#leftBeside(asker, at);
    const plan = this.#withoutPlan.has(shape) ? undefined : planReclaim(asker, this.#rooms, this.#reclaimable(at));
    if (left && left.releaseAt <= Math.max(at, plan?.releaseAt ?? Number.POSITIVE_INFINITY))
      return this.#comeBeside(asker, left);
    if (plan === undefined) {
      this.#withoutPlan.add(shape);
      return undefined;
    }
    this.release(asker.request);
    for (const { room, ...leaving } of plan.pieces) keep(asker.request, room, leaving, this.policyOf);
    for (const leaseId of plan.leaseIds) {
      this.#taken.set(leaseId, requestId);
      this.#insideUntil.set(leaseId, this.#outsideFrom(leaseId, at));
    }
    this.#forgetEnds();
    this.#keeps.add(requestId);
    this.#plans.set(requestId, { ...plan, at });
    return plan;
  }

  /**
   * What was granted in this pass pushes out what its team borrowed before (`pushedOut`: more may be taken back), and
   * may let another lease of the team in (`takenInside`: one that is to be taken back may not be any more).
   */
  moved(): { pushedOut: boolean; takenInside: boolean } {
    if (this.#laid.length === 0) return { pushedOut: false, takenInside: false };
    const before = this.#outside;
    this.#outside = new Map();
    return {
      pushedOut: [...before].some(([at, known]) => [...this.#outsideAt(at).keys()].some((id) => !known.has(id))),
      takenInside: [...this.#plans.values()].some(({ leaseIds, at }) =>
        leaseIds.some((id) => !this.#outsideAt(at).has(id)),
      ),
    };
  }

  /** Leases outside their team's guarantee at a time, with those that were granted in this pass. */
  #outsideAt(at: number): ReadonlyMap<string, Lease> {
    const known = this.#outside.get(at);
    if (known !== undefined) return known;
    const leases = this.#laid.length === 0 ? this.#held : [...this.#held, ...leasesOf(this.#laid)];
    const ids = outsideGuarantee(leases, at === this.#world.now ? this.#promises : promisesAt(this.#world, at));
    const outside = new Map(this.#held.filter((lease) => ids.has(lease.id)).map((lease) => [lease.id, lease]));
    this.#outside.set(at, outside);
    return outside;
  }

  /** Until when a lease that is outside at a time stays: what is due later is not needed before, but for its parking. */
  #outsideFrom(leaseId: string, at: number): number {
    const { now } = this.#world;
    if (at === now) return now;
    return this.#outsideAt(now).has(leaseId) ? Math.max(now, at - PARK_MS) : at;
  }

  #reclaimable(at: number): Reclaimable {
    const outside = this.#outsideAt(at);
    const notBefore = (leaseId: string) => this.#outsideFrom(leaseId, at);
    return {
      ...this.#releases,
      ...{ leases: this.#byDevice, outside, takenFor: this.#taken, reserved: this.#reserved, notBefore },
    };
  }

  /** Keeps the devices on which it will fit first; when that is. */
  keepSoonest(asker: Asker): number | undefined {
    const { requestId, pinnedGpuId } = asker.request;
    const pinned = this.room(pinnedGpuId);
    const rooms = pinned ? [pinned] : this.#inOrderOfEnds();
    const at = keepSoonest(asker, rooms, (room) => this.#endsOn(room), this.#world.now);
    if (at !== undefined) this.#keeps.add(requestId);
    return at;
  }

  #inOrderOfEnds(): readonly Room[] {
    if (this.#byFirstEnd !== undefined) return this.#byFirstEnd;
    const ends = this.#rooms.map((room) => ({ room, at: this.#endsOn(room)[0]?.at ?? Number.MAX_SAFE_INTEGER }));
    this.#byFirstEnd = ends.sort((a, b) => a.at - b.at).map(({ room }) => room);
    return this.#byFirstEnd;
  }

  #endsOn(room: Room): readonly End[] {
    room.ends ??= (this.#byDevice.get(room.device.id) ?? [])
      .map((holding) => ({ holding, at: this.#endOf(holding) }))
      .sort((a, b) => a.at - b.at);
    return room.ends;
  }

  /** Who is taken back ends earlier. */
  #forgetEnds(): void {
    for (const room of this.#rooms) room.ends = undefined;
    this.#byFirstEnd = undefined;
  }

  /** When a lease likely ends; one that is taken back ends at its release. */
  #endOf(holding: Holding): number {
    const { now } = this.#world;
    const end = likelyEnd(holding, this.#quotas.get(holding.teamId)?.idleMs, now);
    if (!this.#taken.has(groupOf(holding))) return end;
    return Math.min(end, releaseOf(holding, this.#releases));
  }

  /** What was kept for it, and those who were told for its sake, are free for others. */
  release({ requestId }: Waiting): void {
    if (!this.#keeps.delete(requestId)) return;
    for (const room of this.#rooms) leave(room, requestId);
    for (const [leaseId, claimant] of this.#taken) if (claimant === requestId) this.#taken.delete(leaseId);
    this.#forgetEnds();
  }

  /** Who has a device kept on which this request would fit otherwise. */
  #heldFor(asker: Asker): string | undefined {
    for (const room of this.#rooms) {
      const { hold } = room;
      if (hold === undefined || !isKeptForOthers(room, asker.request.requestId)) continue;
      room.hold = undefined;
      const wouldFit = fits(asker, room);
      room.hold = hold;
      if (wouldFit) return [...hold.parts.keys()].find((other) => other !== asker.request.requestId);
    }
    return undefined;
  }

  /** What differs from what was told and kept before. */
  changes(waiting: readonly Waiting[]): Omit<Round, "verdicts" | "bearing"> {
    const planned = new Map(
      [...this.#plans].flatMap(([requestId, plan]) => plan.leaseIds.map((id) => [id, requestId])),
    );
    const notices: Round["notices"] = [];
    const withdrawn: string[] = [];
    for (const lease of this.#held) {
      const requestId = planned.get(lease.id);
      const { notice, ending } = lease.first;
      if (ending) continue;
      if (requestId === undefined && notice !== undefined) withdrawn.push(lease.id);
      if (requestId === undefined) continue;
      // Which part of a reservation it is for is nobody's affair.
      const isSame = notice !== undefined && this.#units.has(requestId) && isOfSame(notice.requestId, requestId);
      const told = noticeFor(lease.first, isSame ? notice.requestId : requestId, this.#releases);
      if (told.requestId !== notice?.requestId || told.at !== notice.at)
        notices.push({ leaseId: lease.id, notice: told });
    }
    return { notices, withdrawn, kept: keptChanges(waiting, this.#plans) };
  }
}

/** Whether two parts are of one reservation. */
const isOfSame = (one: string, other: string): boolean => reservationIdOf(one) === reservationIdOf(other);

/** What those leave on a device who are told for this request. */
type Left = { room: Room; requestId: string; left: { milli: number; memoryBytes: number }; releaseAt: number };

/** What is kept on a device for a part of a reservation. */
type KeptForUnit = { room: Room; milli: number; memoryBytes: number; teamId: string; until: number };

/** What is kept for one now is not kept for those that are over when it is due. */
function share(one: KeptForUnit, over: readonly KeptForUnit[]): void {
  let { milli, memoryBytes } = one;
  for (const other of over) {
    if (other.room !== one.room) continue;
    const [theirs, bytes] = [Math.min(other.milli, milli), Math.min(other.memoryBytes, memoryBytes)];
    other.milli -= theirs;
    other.memoryBytes -= bytes;
    milli -= theirs;
    memoryBytes -= bytes;
  }
}

function keptChanges(waiting: readonly Waiting[], plans: ReadonlyMap<string, Plan>): Round["kept"] {
  return waiting.flatMap(({ requestId, keptGpuIds = [] }) => {
    const gpuIds = (plans.get(requestId)?.pieces ?? []).map(({ room }) => room.device.id).sort();
    return sameIds(gpuIds, keptGpuIds) ? [] : [{ requestId, gpuIds }];
  });
}

/** Whether two lists name the same, in whatever order. */
export function sameIds(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((id) => other.includes(id));
}

function byName(a: Room, b: Room): number {
  const order = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0);
  return (
    order(a.device.serverName, b.device.serverName) ||
    order(a.device.name, b.device.name) ||
    order(a.device.id, b.device.id)
  );
}
