/**
 * One look at the queue of a type. First all requests inside their team's guarantee, first come, first served; room
 * for them is taken back where that helps. Then the surplus: by priority, then by weight and past use, in rounds, one
 * request at a time. Who waits for a device has one kept for it, so that small requests never starve a large one,
 * and everybody else goes on elsewhere. Inside a team nobody overtakes at the cost of one ahead.
 */
import { underPolicy } from "./allowed.ts";
import { Heap } from "./heap.ts";
import { insideGuarantee, orderInTeam, placing, quotaObstacle, shapeOf } from "./in-team.ts";
import { aboveQuota, moreLater } from "./later.ts";
import { leastChargeOn, neverFits } from "./never.ts";
import { type Asker, pieceOn } from "./placement.ts";
import { Pool, type Reserved, type Revision, sameIds } from "./pool.ts";
import { type Unit, unitsLeft } from "./reservation.ts";
import type { Room } from "./room.ts";
import { promisesNow } from "./share.ts";
import { heldBack } from "./stops.ts";
import { byAge, byNeed, byRank, type TeamState, teamsOf } from "./team-state.ts";
import type { Obstacle, Placement, Round, Verdict, Waiting, World } from "./types.ts";

/** A team's requests in its own order, and how far they have been judged. */
type Line = { team: TeamState; requests: Waiting[]; at: number };
type Granted = Extract<Verdict, { state: "granted" }>;

/** What a pass has found that all of the next one has to know. */
export type Found = { revisions: ReadonlyMap<string, Revision>; reserved?: Reserved | undefined };

/** After so many requests a pass may rest: they take some milliseconds. */
const AT_ONCE = 500;

export class Pass {
  readonly #world: World;
  readonly #revisions: ReadonlyMap<string, Revision>;
  readonly #reserved: Reserved | undefined;
  readonly #revised = new Map<string, Revision>();
  #replanned = false;
  readonly #teams: ReadonlyMap<string, TeamState>;
  readonly #pool: Pool;
  readonly #verdicts: Verdict[] = [];
  readonly #granted = new Set<string>();
  readonly #surplus: Waiting[] = [];
  #claimsWithoutRoom = 0;
  /** Those that wait beside another request of their team, and up to which use of it both fit below the limit. */
  readonly #beside: { team: TeamState; until: number }[] = [];
  readonly #bearing: Set<string>;
  readonly #least = new Map<string, number>();
  readonly #present: number;
  #judged = 0;

  /** Whom others' places depend on is added to `bearing`. */
  constructor(world: World, bearing: Set<string>, { revisions, reserved }: Found) {
    this.#world = world;
    this.#bearing = bearing;
    this.#revisions = revisions;
    this.#reserved = reserved;
    this.#present = world.devices.filter((device) => device.state !== "gone").length;
    const promises = promisesNow(world);
    this.#pool = new Pool(world, promises, reserved);
    this.#teams = teamsOf(world.holdings, promises);
  }

  /** The round, or what the next pass of the same world has to know from the start. Yields where it may rest. */
  *run(): Generator<void, { round: Round } | { found: Found }> {
    const queue = this.#world.queue.map((request) => this.#underPolicy(request));
    const waiting = this.#revisions.size === 0 ? queue : this.#asRevised(queue);
    this.#pool.keepWhatIsKept(waiting, this.#revisions);
    this.#setAside(waiting.filter((request) => request.keptGpuIds?.length).sort(byAge));
    yield* this.#judgeClaims(this.#notGranted(waiting));
    if (this.#revised.size > 0) return this.#anewWith({ revisions: new Map([...this.#revisions, ...this.#revised]) });
    const moved = [...this.#grantsThatMove(), ...this.#grantsThatOvertake()];
    if (moved.length > 0) return this.#anewWith({ revisions: this.#withPlaced(moved) });
    const units = unitsLeft(this.#world, this.#teams, {
      held: () => this.#pool.held(),
      isMade: (requestId, by) => (this.#pool.roomAt(requestId) ?? Number.POSITIVE_INFINITY) <= by,
    });
    for (const unit of units) this.#pool.keepUnit(unit);
    // Who was told for one part may have made room for another, too: then somebody else is spared.
    const reserved = this.#pool.newlyReserved();
    if (reserved) return this.#anewWith({ reserved });
    yield* this.#judgeSurplus();
    const first = [...this.#grantsThatMove(), ...this.#grantsThatOvertake(), ...this.#grantsOfReserved(units)];
    if (first.length > 0) return this.#anewWith({ revisions: this.#withPlaced(first) });
    const bearing = this.#bearing;
    return { round: { verdicts: numbered(this.#verdicts), ...this.#pool.changes(queue), bearing } };
  }

  #anewWith(found: Partial<Found>): { found: Found } {
    return { found: { revisions: this.#revisions, reserved: this.#reserved, ...found } };
  }

  #asRevised(queue: readonly Waiting[]): readonly Waiting[] {
    this.#grantRevised(queue);
    return this.#notGranted(queue).map((request) => {
      const revision = this.#revisions.get(request.requestId);
      return revision !== undefined && "kept" in revision ? { ...request, keptGpuIds: [...revision.kept] } : request;
    });
  }

  #notGranted(requests: readonly Waiting[]): readonly Waiting[] {
    if (this.#granted.size === 0) return requests;
    return requests.filter(({ requestId }) => !this.#granted.has(requestId));
  }

  /** In the order in which they were granted: who came inside a guarantee stays there. */
  #grantRevised(queue: readonly Waiting[]): void {
    const waiting = new Map(queue.map((request) => [request.requestId, request]));
    for (const [requestId, revision] of this.#revisions) {
      const request = waiting.get(requestId);
      const team = request && this.#teams.get(request.teamId);
      if (!("placed" in revision) || request === undefined || team === undefined) continue;
      this.#grant(
        request,
        team,
        revision.placed.flatMap((gpuId) => this.#pool.room(gpuId) ?? []),
      );
    }
  }

  #underPolicy(request: Waiting): Waiting {
    const milli = underPolicy(request.milli, this.#pool.policyOf?.(request.teamId) ?? "any");
    return milli === request.milli ? request : { ...request, milli };
  }

  /**
   * Room that is being made is made for claims that stay claims: what they will take of their team's guarantee is set
   * aside before anybody is judged, and who fits where room was made is granted it. The others are judged at their
   * turn all the same, so that none takes what one before it waits for.
   */
  #setAside(claimants: readonly Waiting[]): void {
    for (const request of claimants) {
      const { team, least, never } = this.#look(request);
      const charge = Math.max(least, this.#pool.chargeWhereKept(request));
      const stays =
        team !== undefined &&
        never === undefined &&
        this.#heldBack(request, team, least) === undefined &&
        team.isClaim(request, charge) &&
        charge <= team.headroom(request);
      const made = stays ? this.#pool.roomsMade(insideGuarantee(this.#askerOf(request, team), team)) : undefined;
      if (made && team) this.#grant(request, team, made);
      else if (stays) team.reserve(request, charge);
      else this.#pool.release(request);
    }
  }

  *#judgeClaims(waiting: readonly Waiting[]): Generator<void> {
    const heads = new Heap<Line>((a, b) => byAge(a.requests[a.at] as Waiting, b.requests[b.at] as Waiting));
    for (const line of this.#lines(waiting)) heads.push(line);
    for (let line = heads.peek(); line !== undefined; line = heads.peek()) {
      const request = line.requests[line.at] as Waiting;
      this.#judgeClaim(request);
      this.#noteBearing(request, line.team);
      if (this.#replanned) return;
      nextOf(line, heads);
      if (++this.#judged % AT_ONCE === 0) yield;
    }
  }

  /** Judges a request if it lies inside its team's guarantee; leaves it for the surplus otherwise. */
  #judgeClaim(request: Waiting): void {
    const { team, least, never } = this.#look(request);
    if (never || team === undefined) {
      this.#refuse(request, never ?? { rule: "team-limit", ever: true });
      return;
    }
    if (team.unreserve(request)) {
      const told = this.#pool.toldFor(request.requestId);
      this.#judgeInside(request, team, least);
      this.#noteRevision(request, told);
      return;
    }
    const stopped = this.#heldBack(request, team, least);
    if (stopped || !team.isClaim(request, least)) {
      this.#pool.release(request);
      if (!stopped && quotaObstacle(request, team, least) === undefined) {
        team.pending ??= { request, milli: least };
      }
      this.#surplus.push(request);
      return;
    }
    const { pending } = team;
    // One that waits for another of the team anyway leaves what it will take to those behind it.
    const waits = pending !== undefined && orderInTeam(pending.request, team, pending.milli) !== undefined;
    const ahead = pending === undefined || waits || team.isOwn(request, least) ? 0 : pending.milli;
    const spare = team.leftBelowLimit(request.userId) - ahead - least;
    if (spare < 0) {
      this.#surplus.push(request);
      return;
    }
    const obstacle = quotaObstacle(request, team, least) ?? orderInTeam(request, team, least);
    if (obstacle) this.#wait(request, obstacle);
    else this.#judgeInside(request, team, least);
    if (ahead > 0 && !this.#granted.has(request.requestId)) this.#beside.push({ team, until: team.used + spare });
  }

  /** Memory is charged by device: where it would cost more than the guarantee leaves, it is one for the surplus. */
  #judgeInside(request: Waiting, team: TeamState, least: number): void {
    const asker = this.#askerOf(request, team);
    const inside = insideGuarantee(asker, team);
    const rooms = this.#pool.place(inside, placing(inside, team, "inside"));
    const made = rooms === undefined ? this.#makeRoom(inside, team) : undefined;
    if (rooms) this.#grant(request, team, rooms);
    else if (made) this.#wait(request, made);
    else if (request.memoryBytes > 0 && this.#pool.place(asker, placing(asker, team, "all")))
      this.#surplus.push(request);
    else {
      this.#claimsWithoutRoom += 1;
      this.#wait(request, this.#keepRoom(asker, team, least));
    }
  }

  #askerOf(request: Waiting, team: TeamState): Asker {
    return { request, headroomMilli: team.headroom(request), policyOf: this.#pool.policyOf };
  }

  /** Whether what was kept, and who was told, for one that is judged now still stands; `told` is from before. */
  #noteRevision({ requestId, keptGpuIds = [] }: Waiting, told: readonly string[]): void {
    if (this.#revisions.has(requestId)) return;
    const last = this.#verdicts.at(-1);
    if (last?.state === "granted" && last.requestId === requestId) {
      const placed = last.placement.pieces.map((piece) => piece.gpuId);
      if (told.length > 0 || !sameIds(placed, keptGpuIds)) this.#revised.set(requestId, { placed });
      return;
    }
    const plan = this.#pool.planOf(requestId);
    const kept = (plan?.pieces ?? []).map(({ room }) => room.device.id);
    const leaseIds = plan?.leaseIds ?? [];
    if (sameIds(kept, keptGpuIds) && sameIds(leaseIds, told)) return;
    this.#revised.set(requestId, { kept, told: leaseIds });
    this.#replanned = true;
  }

  /**
   * Grants after which another must be judged anew. Who has come inside a guarantee pushes out what its team borrowed
   * before: that may be taken back now for one that was judged earlier and found nothing. What was outside may have come
   * inside in its place: that may not be taken back any more.
   */
  #grantsThatMove(): Granted[] {
    const { pushedOut, takenInside } = this.#pool.moved();
    if (!takenInside && !(pushedOut && this.#claimsWithoutRoom > 0)) return [];
    const open = this.#grantsOfThisPass();
    const inside = open.filter(({ placement }) => !placement.borrowed);
    // Where the clock has jumped back, one that was granted above the guarantee is older than one inside it.
    return inside.length === 0 ? open : inside;
  }

  /**
   * Who was granted more than its guarantee leaves may have used up what is reserved for its team, and what was kept of
   * that on another device is for others.
   */
  #grantsOfReserved(units: readonly Unit[]): Granted[] {
    const teams = new Set(units.map(({ request }) => request.teamId));
    if (teams.size === 0) return [];
    const asked = new Set(this.#surplus.filter(({ teamId }) => teams.has(teamId)).map(({ requestId }) => requestId));
    return this.#grantsOfThisPass().filter(({ requestId }) => asked.has(requestId));
  }

  /** Who was granted behind a claim that waits may leave less than that and the older one beside it will take: then it is no claim. */
  #grantsThatOvertake(): Granted[] {
    const teams = new Set(this.#beside.flatMap(({ team, until }) => (team.used > until ? [team.quota.teamId] : [])));
    if (teams.size === 0) return [];
    const theirs = new Set(this.#world.queue.filter(({ teamId }) => teams.has(teamId)).map((one) => one.requestId));
    return this.#grantsOfThisPass().filter(({ requestId }) => theirs.has(requestId));
  }

  /** Those that the next pass does not know of yet. */
  #grantsOfThisPass(): Granted[] {
    const known = (requestId: string) => "placed" in (this.#revisions.get(requestId) ?? {});
    return this.#verdicts.flatMap((verdict) =>
      verdict.state === "granted" && !known(verdict.requestId) ? [verdict] : [],
    );
  }

  /** What was granted stays, with all that was granted before it, and for whom room is made is found anew beside it. */
  #withPlaced(grants: readonly Granted[]): ReadonlyMap<string, Revision> {
    const before = [...this.#revisions].filter(([, revision]) => "placed" in revision);
    const open = this.#grantsOfThisPass();
    const last = open.findLastIndex((one) => grants.includes(one));
    const placed = open.slice(0, last + 1).map(({ requestId, placement }): [string, Revision] => {
      return [requestId, { placed: placement.pieces.map((piece) => piece.gpuId) }];
    });
    return new Map([...before, ...placed]);
  }

  *#judgeSurplus(): Generator<void> {
    for (const team of this.#teams.values()) team.pending = undefined;
    // Whom they hold up there is found at their turn.
    for (const request of this.#surplus) this.#teams.get(request.teamId)?.forget(request);
    const heads = new Heap<Line>(
      (a, b) => byNeed(a.team, b.team) || byAge(a.requests[a.at] as Waiting, b.requests[b.at] as Waiting),
    );
    for (const line of this.#lines(this.#surplus)) heads.push(line);
    for (let line = heads.peek(); line !== undefined; line = heads.peek()) {
      const request = line.requests[line.at] as Waiting;
      const least = this.#leastCharge(request);
      const stopped = this.#heldBack(request, line.team, least);
      if (stopped) this.#wait(request, stopped);
      else this.#judge(request, line.team, least);
      this.#noteBearing(request, line.team);
      nextOf(line, heads);
      if (++this.#judged % AT_ONCE === 0) yield;
    }
  }

  /** Whether anything about others follows from where it stands: a grant, a device kept, or what is left of a quota. */
  #noteBearing({ requestId, userId, keptGpuIds, pinnedGpuId }: Waiting, team: TeamState): void {
    if (
      keptGpuIds?.length ||
      pinnedGpuId !== undefined ||
      team.isHeldUpBy(requestId, userId) ||
      this.#pool.keeps(requestId)
    )
      this.#bearing.add(requestId);
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
    for (const { requests } of lines.values()) {
      requests.sort(byRank);
      // Who is judged before whom follows from all of them where the oldest is not the first.
      if (requests[0]?.rank !== requests.at(-1)?.rank) for (const one of requests) this.#bearing.add(one.requestId);
    }
    return [...lines.values()];
  }

  #look(request: Waiting): { team: TeamState | undefined; least: number; never: Obstacle | undefined } {
    const team = this.#teams.get(request.teamId);
    const least = this.#leastCharge(request);
    return {
      team,
      least,
      never: neverFits(request, team?.quotaOf(request.userId), this.#world, this.#present, least),
    };
  }

  /** What holds it back whatever is free: a stop, the type's calendar, or that its team may use so much only later. */
  #heldBack(request: Waiting, team: TeamState | undefined, least: number): Obstacle | undefined {
    const held = heldBack(request, this.#world);
    const rule = held === undefined && team && aboveQuota(request, team.quotaOf(request.userId), least);
    if (!rule) return held;
    const more = moreLater(request, least, this.#world);
    return { rule, ever: false, ...(more && { more }) };
  }

  #leastCharge(request: Waiting): number {
    if (request.memoryBytes === 0) return request.milli;
    const { milli, memoryBytes, pinnedGpuId, needs } = request;
    const key = JSON.stringify([milli, memoryBytes, pinnedGpuId, needs]);
    const known = this.#least.get(key);
    if (known !== undefined) return known;
    const least = leastChargeOn(request, this.#world.devices);
    this.#least.set(key, least);
    return least;
  }

  #judge(request: Waiting, team: TeamState, least: number): void {
    const obstacle = quotaObstacle(request, team, least) ?? orderInTeam(request, team, least);
    const asker = this.#askerOf(request, team);
    const rooms = obstacle === undefined ? this.#pool.place(asker, placing(asker, team, "all")) : undefined;
    if (rooms) this.#grant(request, team, rooms);
    else this.#wait(request, obstacle ?? this.#waitForDevice(asker, team, least));
  }

  #grant(request: Waiting, team: TeamState, rooms: readonly Room[]): void {
    this.#pool.release(request);
    const pieces = rooms.map((room) => pieceOn(request, room));
    const milli = pieces.reduce((sum, piece) => sum + piece.milli, 0);
    const memoryBytes = pieces.reduce((sum, piece) => sum + piece.memoryBytes, 0);
    const borrowed = !request.guaranteedOnly && milli > team.leftInsideNow(request.userId);
    this.#pool.grant(request, pieces, borrowed);
    team.add({ userId: request.userId, milli, borrowed });
    this.#granted.add(request.requestId);
    this.#bearing.add(request.requestId);
    const placement: Placement = { gpuId: pieces[0]?.gpuId ?? "", milli, memoryBytes, borrowed, pieces };
    this.#verdicts.push({ state: "granted", requestId: request.requestId, placement });
  }

  /** Makes room where that is a right, and keeps a device for the first of each team in any case. */
  #waitForDevice(asker: Asker, team: TeamState, least: number): Obstacle {
    const made = team.isClaim(asker.request, least) ? this.#makeRoom(insideGuarantee(asker, team), team) : undefined;
    return made ?? this.#keepRoom(asker, team, least);
  }

  /** Nothing when there is nobody who could make room. What was kept for it is kept no longer then. */
  #makeRoom(inside: Asker, team: TeamState): Obstacle | undefined {
    const { request } = inside;
    const plan = this.#pool.makeRoom(inside, `${request.teamId}/${shapeOf(request, team)}`);
    if (plan === undefined) {
      this.#pool.release(request);
      return undefined;
    }
    // Memory is charged by device: what it will take is known when the device is.
    const charge = plan.pieces.reduce((sum, { room }) => sum + pieceOn(request, room).milli, 0);
    this.#setFirst(request, team, charge, true);
    return { rule: "reclaim", releaseAt: plan.releaseAt, leaseIds: plan.leaseIds };
  }

  #keepRoom(asker: Asker, team: TeamState, least: number): Obstacle {
    const { request } = asker;
    const first = team.first === undefined;
    const claim = team.isClaim(request, least);
    const own = team.isOwn(request, least);
    // Who waits for one device only holds up nobody until room is made there.
    const pinned = request.pinnedGpuId !== undefined;
    if ((claim || first) && !pinned) this.#setFirst(request, team, least, claim);
    const likelyAt = first || own || pinned ? this.#pool.keepSoonest(asker) : undefined;
    if (pinned && likelyAt !== undefined) this.#leave(request, team, least, claim);
    return this.#deviceObstacle(request, this.#pool.heldFor(placing(asker, team, "all")), likelyAt);
  }

  /**
   * What one that waits for one device will take of its right, or of its person's ceiling, is left to it. Who takes what
   * it would borrow is served: then nothing is kept for it any more.
   */
  #leave(request: Waiting, team: TeamState, charge: number, claim: boolean): void {
    // One of its team that takes of its right all the same, where there is a device: then it is no claim any more.
    if (claim) this.#beside.push({ team, until: team.used + team.leftInsideNow(request.userId) - charge });
    if (claim || team.quota.personMilli !== undefined) team.reserve(request, charge);
    else this.#beside.push({ team, until: team.used + team.leftBelowLimit(request.userId) - charge });
  }

  /** Those of its team leave to it what it will take. */
  #setFirst({ requestId, userId }: Waiting, team: TeamState, charge: number, claim: boolean): void {
    if (claim) team.firstClaim ??= requestId;
    team.reserve({ requestId, userId }, charge);
    team.first ??= requestId;
  }

  #deviceObstacle(request: Waiting, blocked: string | undefined, likelyAt: number | undefined): Obstacle {
    if (blocked !== undefined) return { rule: "order", behind: blocked };
    const pinned = this.#pool.room(request.pinnedGpuId);
    if (pinned) return { rule: "pinned", why: pinned.device.state === "away" ? "away" : "busy" };
    if (!this.#world.devices.some((device) => device.state === "open")) return { rule: "no-server" };
    return { rule: "free-device", ...(likelyAt === undefined ? {} : { likelyAt }) };
  }

  #wait(request: Waiting, obstacle: Obstacle): void {
    const { requestId } = request;
    this.#verdicts.push({ state: "queued", requestId, position: 0, of: 0, obstacle });
  }

  #refuse(request: Waiting, obstacle: Obstacle): void {
    this.#pool.release(request);
    this.#verdicts.push({ state: "refused", requestId: request.requestId, obstacle });
  }
}

/** The first line goes on with its next request, or is done. */
function nextOf(line: Line, heads: Heap<Line>): void {
  line.at += 1;
  if (line.at < line.requests.length) heads.sinkTop();
  else heads.pop();
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
