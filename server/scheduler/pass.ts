/**
 * One look at the queue of a type. First all requests inside their team's guarantee, first come, first served; room
 * for them is taken back where that helps. Then the surplus: by priority, then by weight and past use, in rounds, one
 * request at a time. Who waits for a device has one kept for it, so that small requests never starve a large one,
 * and everybody else goes on elsewhere. Inside a team nobody overtakes at the cost of one ahead.
 */
import { underPolicy } from "./allowed.ts";
import { Heap } from "./heap.ts";
import { byDevice, type End, keep, keepSoonest, likelyEnd } from "./hold.ts";
import { leastChargeOn, neverFits } from "./never.ts";
import { DEFAULT_POLICY } from "./notice.ts";
import { type Asker, fits, pieceOn, place } from "./placement.ts";
import { noticeFor, type Plan, planReclaim, type Reclaimable, releaseOf } from "./reclaim.ts";
import { unitsLeft } from "./reservation.ts";
import { type Room, roomOf, take } from "./room.ts";
import { groupOf, guaranteesNow, type Lease, leasesOf, outsideGuarantee, withReservations } from "./share.ts";
import { heldBack } from "./stops.ts";
import { byAge, byNeed, byRank, TeamState } from "./team-state.ts";
import type { CoTenancy, Holding, Obstacle, Piece, Placement, Quota, Round, Verdict, Waiting, World } from "./types.ts";

/** A team's requests in its own order, and how far they have been judged. */
type Line = { team: TeamState; requests: Waiting[]; at: number };

export class Pass {
  readonly #world: World;
  readonly #quotas: ReadonlyMap<string, Quota>;
  readonly #teams = new Map<string, TeamState>();
  /** In a fixed order, by which ties are broken. */
  readonly #rooms: Room[];
  readonly #roomById: Map<string, Room>;
  /** Nothing when every team shares cards with every other, which spares looking at who lies where. */
  readonly #policyOf: ((teamId: string) => CoTenancy) | undefined;
  readonly #verdicts: Verdict[] = [];
  readonly #surplus: Waiting[] = [];
  readonly #byDevice: Map<string, Holding[]>;
  readonly #held: readonly Lease[];
  readonly #taken = new Map<string, string>();
  readonly #plans = new Map<string, Plan>();
  #outside: ReadonlyMap<string, Lease> | undefined;
  /** Requests that have a device kept for them. */
  readonly #keeps = new Set<string>();
  /**
   * Shapes that found no device, and who has one kept that would do: rooms only shrink, so the next of the same shape
   * finds none either.
   */
  readonly #without = new Map<string, string | undefined>();
  /** Teams and shapes for which nothing can be taken back. */
  readonly #withoutPlan = new Set<string>();
  readonly #least = new Map<string, number>();
  /** Leases by device in the order of their ends, while nothing about them changes. */
  readonly #ends = new Map<string, End[]>();
  readonly #present: number;

  constructor(world: World) {
    this.#world = world;
    this.#quotas = withReservations(world);
    const exclusive = [...this.#quotas.values()].some(({ coTenancy = "any" }) => coTenancy !== "any");
    this.#policyOf = exclusive ? (teamId) => this.#quotas.get(teamId)?.coTenancy ?? "any" : undefined;
    this.#present = world.devices.filter((device) => device.state !== "gone").length;
    this.#roomById = roomOf(world.devices, world.holdings);
    this.#rooms = [...this.#roomById.values()].sort(byName);
    this.#byDevice = byDevice(world.holdings);
    this.#held = leasesOf(world.holdings);
    const guarantees = guaranteesNow(world, this.#quotas);
    for (const quota of this.#quotas.values()) {
      this.#teams.set(quota.teamId, new TeamState(quota, guarantees.get(quota.teamId) ?? 0));
    }
    for (const holding of world.holdings) this.#teams.get(holding.teamId)?.add(holding);
  }

  run(): Round {
    const waiting = this.#world.queue.map((request) => this.#underPolicy(request));
    this.#keepWhatIsKept(waiting);
    const kept = waiting.filter((request) => request.keptGpuIds?.length).sort(byAge);
    for (const request of kept) this.#judgeClaim(request);
    this.#judgeClaims(waiting.filter((request) => !request.keptGpuIds?.length));
    for (const unit of unitsLeft(this.#world, this.#teams)) this.#keepUnit(unit);
    this.#judgeSurplus();
    return { verdicts: numbered(this.#verdicts), ...this.#changes(waiting) };
  }

  #underPolicy(request: Waiting): Waiting {
    const milli = underPolicy(request.milli, this.#policyOf?.(request.teamId) ?? "any");
    return milli === request.milli ? request : { ...request, milli };
  }

  /** Devices on which room is being made are kept before anybody is judged. */
  #keepWhatIsKept(waiting: readonly Waiting[]): void {
    const claimants = new Set(waiting.filter((one) => one.keptGpuIds?.length).map((one) => one.requestId));
    for (const { id, first } of this.#held) {
      // Whoever was told for the sake of one that has left is free again.
      if (first.notice && claimants.has(first.notice.requestId)) this.#taken.set(id, first.notice.requestId);
    }
    for (const request of waiting) {
      for (const gpuId of request.keptGpuIds ?? []) {
        const room = this.#roomById.get(gpuId);
        if (room === undefined || room.hold !== undefined) continue;
        const leaving = (this.#byDevice.get(gpuId) ?? []).filter(
          (holding) => holding.ending || holding.notice?.requestId === request.requestId,
        );
        keep(request, room, leaving, this.#policyOf);
        this.#keeps.add(request.requestId);
      }
    }
  }

  #judgeClaims(waiting: readonly Waiting[]): void {
    const heads = new Heap<Line>((a, b) => byAge(a.requests[a.at] as Waiting, b.requests[b.at] as Waiting));
    for (const line of this.#lines(waiting)) heads.push(line);
    for (let line = heads.pop(); line !== undefined; line = heads.pop()) {
      this.#judgeClaim(line.requests[line.at] as Waiting);
      line.at += 1;
      if (line.at < line.requests.length) heads.push(line);
    }
  }

  /** Judges a request if it lies inside its team's guarantee; leaves it for the surplus otherwise. */
  #judgeClaim(request: Waiting): void {
    const { team, least, never } = this.#look(request);
    if (never || team === undefined) {
      this.#refuse(request, never ?? { rule: "team-limit", ever: true });
      return;
    }
    const stopped = heldBack(request, this.#world);
    if (stopped || !team.isClaim(least)) {
      this.#release(request);
      if (!stopped && this.#quotaObstacle(request, team, least) === undefined) {
        team.pending ??= { requestId: request.requestId, milli: least };
      }
      this.#surplus.push(request);
      return;
    }
    const ahead = team.pending?.milli ?? 0;
    if (team.used + team.reserved + ahead + least > team.quota.limitMilli) this.#surplus.push(request);
    else this.#judge(request, team, least);
  }

  #judgeSurplus(): void {
    for (const team of this.#teams.values()) team.pending = undefined;
    const heads = new Heap<Line>(
      (a, b) => byNeed(a.team, b.team) || byAge(a.requests[a.at] as Waiting, b.requests[b.at] as Waiting),
    );
    for (const line of this.#lines(this.#surplus)) heads.push(line);
    for (let line = heads.pop(); line !== undefined; line = heads.pop()) {
      const request = line.requests[line.at] as Waiting;
      const stopped = heldBack(request, this.#world);
      if (stopped) this.#wait(request, stopped);
      else this.#judge(request, line.team, this.#leastCharge(request));
      line.at += 1;
      if (line.at < line.requests.length) heads.push(line);
    }
  }

  #lines(waiting: readonly Waiting[]): Line[] {
    const lines = new Map<string, Line>();
    for (const request of waiting) {
      const team = this.#teams.get(request.teamId);
      const line = lines.get(request.teamId);
      if (line !== undefined) line.requests.push(request);
      else if (team !== undefined) lines.set(request.teamId, { team, requests: [request], at: 0 });
      else this.#judgeClaim(request);
    }
    for (const line of lines.values()) line.requests.sort(byRank);
    return [...lines.values()];
  }

  #look(request: Waiting): { team: TeamState | undefined; least: number; never: Obstacle | undefined } {
    const team = this.#teams.get(request.teamId);
    const { devices, now } = this.#world;
    const least = this.#leastCharge(request);
    return { team, least, never: neverFits(request, team?.quota, { devices, present: this.#present, now }, least) };
  }

  #leastCharge(request: Waiting): number {
    if (request.memoryBytes === 0) return request.milli;
    const key = `${request.milli}/${request.memoryBytes}/${request.pinnedGpuId ?? ""}`;
    const known = this.#least.get(key);
    if (known !== undefined) return known;
    const least = leastChargeOn(request, this.#world.devices);
    this.#least.set(key, least);
    return least;
  }

  #judge(request: Waiting, team: TeamState, least: number): void {
    const obstacle = this.#quotaObstacle(request, team, least) ?? orderInTeam(request, team, least);
    const asker: Asker = { request, headroomMilli: team.headroom(request), policyOf: this.#policyOf };
    const rooms = obstacle === undefined ? this.#place(asker, team) : undefined;
    if (rooms) this.#grant(request, team, rooms);
    else this.#wait(request, obstacle ?? this.#waitForDevice(asker, team, least));
  }

  #quotaObstacle(request: Waiting, team: TeamState, least: number): Obstacle | undefined {
    const { requestId, userId } = request;
    const { limitMilli, personMilli } = team.quota;
    if (team.used + least > limitMilli) {
      team.firstForLimit ??= requestId;
      return { rule: "team-limit", ever: false };
    }
    if (personMilli !== undefined && team.usedBy(userId) + least > personMilli) {
      if (!team.firstOfPerson.has(userId)) team.firstOfPerson.set(userId, requestId);
      return { rule: "person-limit", ever: false };
    }
    if (request.guaranteedOnly && team.inside + least > team.guaranteed) {
      team.firstForGuarantee ??= requestId;
      return { rule: "guaranteed", ever: false };
    }
    return undefined;
  }

  #place(asker: Asker, team: TeamState): Room[] | undefined {
    const shape = shapeOf(asker.request, team);
    if (this.#without.has(shape)) return undefined;
    const rooms = place(asker, this.#rooms);
    if (rooms === undefined) this.#without.set(shape, this.#heldFor(asker));
    return rooms;
  }

  #grant(request: Waiting, team: TeamState, rooms: readonly Room[]): void {
    this.#release(request);
    const pieces = rooms.map((room) => {
      const piece = pieceOn(request, room);
      take(room, { ...piece, teamId: request.teamId });
      this.#lay(request, piece);
      return piece;
    });
    const milli = pieces.reduce((sum, piece) => sum + piece.milli, 0);
    const memoryBytes = pieces.reduce((sum, piece) => sum + piece.memoryBytes, 0);
    const borrowed = !request.guaranteedOnly && team.used + milli > team.guaranteed;
    team.add({ userId: request.userId, milli, borrowed });
    const placement: Placement = { gpuId: pieces[0]?.gpuId ?? "", milli, memoryBytes, borrowed, pieces };
    this.#verdicts.push({ state: "granted", requestId: request.requestId, placement });
  }

  /** Those judged later wait for its end too. */
  #lay(request: Waiting, piece: Piece): void {
    const { requestId, teamId, userId, who, lengthMs } = request;
    const { now } = this.#world;
    const times = { grantedAt: now, expiresAt: now + lengthMs, lastWorkAt: now };
    const holding: Holding = { ...piece, ...times, leaseId: requestId, teamId, userId, who, borrowed: true };
    const there = this.#byDevice.get(piece.gpuId);
    this.#ends.delete(piece.gpuId);
    if (there === undefined) this.#byDevice.set(piece.gpuId, [holding]);
    else there.push(holding);
  }

  /** Makes room where that is a right, and keeps a device for the first of each team in any case. */
  #waitForDevice(asker: Asker, team: TeamState, least: number): Obstacle {
    const { request } = asker;
    const claim = team.isClaim(least);
    const shape = shapeOf(request, team);
    const inside = Math.min(asker.headroomMilli, team.guaranteed - team.used - team.reserved);
    const plan = claim ? this.#planFor({ ...asker, headroomMilli: inside }, `${request.teamId}/${shape}`) : undefined;
    if (plan === undefined) this.#release(request);
    const first = team.first === undefined;
    if (request.pinnedGpuId === undefined) {
      if (claim) team.firstClaim ??= request.requestId;
      // Memory is charged by device: what it will take is known when the device is.
      const charge = plan?.pieces.reduce((sum, { room }) => sum + pieceOn(request, room).milli, 0) ?? least;
      if (claim || first) team.reserve(request, charge);
      team.first ??= request.requestId;
    }
    if (plan) return { rule: "reclaim", releaseAt: plan.releaseAt, leaseIds: plan.leaseIds };
    const likelyAt = first || request.pinnedGpuId !== undefined ? this.#keepSoonest(asker) : undefined;
    return this.#deviceObstacle(request, this.#without.get(shape), likelyAt);
  }

  #planFor(asker: Asker, shape: string): Plan | undefined {
    const { requestId } = asker.request;
    if (this.#withoutPlan.has(shape)) return undefined;
    const plan = planReclaim(asker, this.#rooms, this.#reclaimable());
    if (plan === undefined) {
      this.#withoutPlan.add(shape);
      return undefined;
    }
    this.#release(asker.request);
    for (const { room, leaving } of plan.pieces) keep(asker.request, room, leaving, this.#policyOf);
    for (const leaseId of plan.leaseIds) this.#taken.set(leaseId, requestId);
    this.#ends.clear();
    this.#keeps.add(requestId);
    this.#plans.set(requestId, plan);
    return plan;
  }

  #reclaimable(): Reclaimable {
    if (this.#outside === undefined) {
      const guarantees = new Map([...this.#teams].map(([teamId, team]) => [teamId, team.guaranteed]));
      const ids = outsideGuarantee(this.#held, guarantees);
      this.#outside = new Map(this.#held.filter((lease) => ids.has(lease.id)).map((lease) => [lease.id, lease]));
    }
    const { policy = DEFAULT_POLICY, now } = this.#world;
    return { leases: this.#byDevice, outside: this.#outside, takenFor: this.#taken, policy, now };
  }

  #keepSoonest(asker: Asker): number | undefined {
    const { requestId, pinnedGpuId } = asker.request;
    const pinned = pinnedGpuId === undefined ? undefined : this.#roomById.get(pinnedGpuId);
    const rooms = pinned ? [pinned] : this.#rooms;
    const at = keepSoonest(asker, rooms, (room) => this.#endsOn(room.device.id), this.#world.now);
    if (at !== undefined) this.#keeps.add(requestId);
    return at;
  }

  #endsOn(gpuId: string): readonly End[] {
    const known = this.#ends.get(gpuId);
    if (known !== undefined) return known;
    const there = this.#byDevice.get(gpuId) ?? [];
    const ends = there.map((holding) => ({ holding, at: this.#endOf(holding) })).sort((a, b) => a.at - b.at);
    this.#ends.set(gpuId, ends);
    return ends;
  }

  /** When a lease likely ends; one that is taken back ends at its release. */
  #endOf(holding: Holding): number {
    const { now, policy = DEFAULT_POLICY } = this.#world;
    const end = likelyEnd(holding, this.#quotas.get(holding.teamId)?.idleMs, now);
    if (!this.#taken.has(groupOf(holding))) return end;
    return Math.min(end, releaseOf(holding, { now, policy }));
  }

  /** What was kept for it, and those who were told for its sake, are free for others. */
  #release({ requestId }: Waiting): void {
    if (!this.#keeps.delete(requestId)) return;
    for (const room of this.#rooms) if (room.hold?.requestId === requestId) room.hold = undefined;
    for (const [leaseId, claimant] of this.#taken) if (claimant === requestId) this.#taken.delete(leaseId);
    this.#ends.clear();
  }

  /** Who has a device kept on which this request would fit otherwise. */
  #heldFor(asker: Asker): string | undefined {
    for (const room of this.#rooms) {
      const { hold } = room;
      if (hold === undefined || hold.requestId === asker.request.requestId) continue;
      room.hold = undefined;
      const wouldFit = fits(asker, room);
      room.hold = hold;
      if (wouldFit) return hold.requestId;
    }
    return undefined;
  }

  #deviceObstacle(request: Waiting, blocked: string | undefined, likelyAt: number | undefined): Obstacle {
    if (blocked !== undefined) return { rule: "order", behind: blocked };
    const pinned = request.pinnedGpuId === undefined ? undefined : this.#roomById.get(request.pinnedGpuId);
    if (pinned) return { rule: "pinned", why: pinned.device.state === "away" ? "away" : "busy" };
    if (!this.#world.devices.some((device) => device.state === "open")) return { rule: "no-server" };
    return { rule: "free-device", ...(likelyAt === undefined ? {} : { likelyAt }) };
  }

  /** A part of a reservation that is not leased yet: the room is kept, and made where it is missing. */
  #keepUnit(unit: Waiting): void {
    const asker: Asker = { request: unit, headroomMilli: Number.POSITIVE_INFINITY, policyOf: this.#policyOf };
    const rooms = place(asker, this.#rooms);
    if (rooms) for (const room of rooms) take(room, { ...pieceOn(unit, room), teamId: unit.teamId });
    else this.#planFor(asker, unit.requestId);
  }

  #wait(request: Waiting, obstacle: Obstacle): void {
    const { requestId } = request;
    this.#verdicts.push({ state: "queued", requestId, position: 0, of: 0, obstacle });
  }

  #refuse(request: Waiting, obstacle: Obstacle): void {
    this.#release(request);
    this.#verdicts.push({ state: "refused", requestId: request.requestId, obstacle });
  }

  /** What differs from what was told and kept before. */
  #changes(waiting: readonly Waiting[]): Omit<Round, "verdicts"> {
    const planned = new Map(
      [...this.#plans].flatMap(([requestId, plan]) => plan.leaseIds.map((id) => [id, requestId])),
    );
    const from = this.#reclaimable();
    const notices: Round["notices"] = [];
    const withdrawn: string[] = [];
    for (const lease of this.#held) {
      const requestId = planned.get(lease.id);
      const { notice, ending } = lease.first;
      if (ending) continue;
      if (requestId === undefined && notice !== undefined) withdrawn.push(lease.id);
      if (requestId === undefined) continue;
      const told = noticeFor(lease.first, requestId, from);
      if (told.requestId !== notice?.requestId || told.at !== notice.at)
        notices.push({ leaseId: lease.id, notice: told });
    }
    return { notices, withdrawn, kept: keptChanges(waiting, this.#plans) };
  }
}

function keptChanges(waiting: readonly Waiting[], plans: ReadonlyMap<string, Plan>): Round["kept"] {
  return waiting.flatMap(({ requestId, keptGpuIds = [] }) => {
    const gpuIds = (plans.get(requestId)?.pieces ?? []).map(({ room }) => room.device.id).sort();
    const same = gpuIds.length === keptGpuIds.length && gpuIds.every((id) => keptGpuIds.includes(id));
    return same ? [] : [{ requestId, gpuIds }];
  });
}

/**
 * Nobody of a team overtakes at the cost of one ahead: neither of the limit, nor of a place inside the guarantee, nor
 * of the team's turn at the surplus.
 */
function orderInTeam(request: Waiting, team: TeamState, least: number): Obstacle | undefined {
  const behind = (requestId: string | undefined): Obstacle | undefined =>
    requestId === undefined || requestId === request.requestId ? undefined : { rule: "order", behind: requestId };
  const { used, reserved, guaranteed, quota } = team;
  return (
    behind(team.firstForLimit) ??
    behind(team.firstOfPerson.get(request.userId)) ??
    behind(team.aheadOfPerson(request.userId, least)) ??
    (request.guaranteedOnly ? behind(team.firstForGuarantee) : undefined) ??
    (used + reserved + least > quota.limitMilli ? behind(team.first) : undefined) ??
    (used + reserved + least > guaranteed ? behind(team.firstClaim ?? team.first) : undefined)
  );
}

/** Requests of one shape fit the same devices. Memory is charged by device, and what the team has left bounds it. */
function shapeOf(request: Waiting, team: TeamState): string {
  const { milli, memoryBytes, pinnedGpuId = "", needs, guaranteedOnly } = request;
  const shape = `${milli}/${memoryBytes}/${pinnedGpuId}/${needs === undefined ? "" : JSON.stringify(needs)}`;
  const own = memoryBytes > 0 || team.quota.coTenancy !== undefined;
  const kept = request.keptGpuIds?.length ? request.requestId : "";
  return own ? `${shape}/${guaranteedOnly}/${request.teamId}/${request.userId}/${kept}` : `${shape}/${kept}`;
}

function numbered(verdicts: readonly Verdict[]): Verdict[] {
  const of = verdicts.filter((verdict) => verdict.state === "queued").length;
  let position = 0;
  return verdicts.map((verdict) => {
    if (verdict.state !== "queued") return verdict;
    position += 1;
    return { ...verdict, position, of };
  });
}

function byName(a: Room, b: Room): number {
  const order = (one: string, other: string) => (one < other ? -1 : one > other ? 1 : 0);
  return (
    order(a.device.serverName, b.device.serverName) ||
    order(a.device.name, b.device.name) ||
    order(a.device.id, b.device.id)
  );
}
