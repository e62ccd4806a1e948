import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Facts, judge, type LeaseFact, limits, type RequestFact, type ServerFact } from "./liveness.ts";

const owner = { kind: "kernel" as const, pid: 40, startTime: 7 };
const start = 1_000_000;

const lease = (options: Partial<LeaseFact> = {}): LeaseFact => ({
  ...{ id: "lea", requestId: options.id ?? "lea", state: "active" as const, workspaceId: "ws", serverId: "gsv", owner },
  ...{ isOwnerSeen: false, claimChanceAt: null },
  ...{ grantedAt: start, claimedAt: start, disconnectedAt: null, expiresAt: start + 3_600_000, workspaceRuns: true },
  ...{ releaseAt: null, withServer: false, lastWorkAt: start, idleMs: Number.MAX_SAFE_INTEGER },
  ...options,
});
const facts = (options: Partial<Facts> = {}): Facts => ({
  leases: [],
  parking: [],
  requests: [],
  servers: [],
  owners: [],
  ...options,
});
const at = (seconds: number) => start + seconds * 1000;
/** What is done at each of these seconds. */
const judged = (given: Facts, seconds: number, watchingSince = 0) => judge(given, at(seconds), watchingSince);

describe("a lease", () => {
  test("that is taken back ends with memory parked when the notice is over, and not before", () => {
    const given = facts({ leases: [lease({ releaseAt: at(120) })] });
    expect(judged(given, 119)).toEqual([]);
    expect(judged(given, 120)).toEqual([
      { do: "end-lease", leaseId: "lea", requestId: "lea", reason: "taken back", mode: "park" },
    ]);
    const leaving = facts({ leases: [lease({ releaseAt: at(120), withServer: true })] });
    const note = "its GPU server goes out of service";
    expect(judged(leaving, 120)).toMatchObject([{ reason: "taken back", mode: "kill", note }]);
  });

  test("whose GPU has not worked for the idle time ends with memory parked; nobody is idle unheard", () => {
    const idle = { idleMs: 1_200_000, lastWorkAt: at(10) };
    expect(judged(facts({ leases: [lease(idle)] }), 1209)).toEqual([]);
    const ended = [{ do: "end-lease", leaseId: "lea", requestId: "lea", reason: "idle", mode: "park" }];
    expect(judged(facts({ leases: [lease(idle)] }), 1210)).toEqual(ended);
    expect(judged(facts({ leases: [lease(idle)] }), 1210, at(60))).toEqual([]);
    expect(judged(facts({ leases: [lease({ ...idle, state: "unreachable" })] }), 1210)).toEqual([]);
  });

  test("whose GPU server goes out of service is not ended idle before that, whichever of its devices is there", () => {
    const idle = { requestId: "req", idleMs: 60_000, lastWorkAt: at(0) };
    const leaves = { releaseAt: at(120), withServer: true };
    const pair = [lease({ id: "a", ...idle }), lease({ id: "b", ...idle, ...leaves })];
    expect(judged(facts({ leases: pair }), 119)).toEqual([]);
    expect(judged(facts({ leases: pair }), 120)).toMatchObject([{ leaseId: "b", mode: "kill" }]);
  });

  test("of several GPUs is idle when all of them are", () => {
    const pair = (worked: number) => [
      lease({ id: "a", requestId: "req", idleMs: 60_000, lastWorkAt: at(0) }),
      lease({ id: "b", requestId: "req", idleMs: 60_000, lastWorkAt: at(worked) }),
    ];
    expect(judged(facts({ leases: pair(30) }), 89)).toEqual([]);
    expect(judged(facts({ leases: pair(30) }), 90)).toMatchObject([
      { leaseId: "a", reason: "idle" },
      { leaseId: "b", reason: "idle" },
    ]);
  });

  test("that gpud does not park in time is ended without", () => {
    const given = facts({ parking: [{ id: "lea", since: at(0) }] });
    expect(judged(given, 29)).toEqual([]);
    expect(judged(given, 30)).toEqual([{ do: "stop-parking", leaseId: "lea" }]);
  });

  test("that is used goes on, and ends with memory parked when its time is up", () => {
    expect(judged(facts({ leases: [lease()] }), 3599)).toEqual([]);
    expect(judged(facts({ leases: [lease()] }), 3600)).toEqual([
      { do: "end-lease", leaseId: "lea", requestId: "lea", reason: "time up", mode: "park" },
    ]);
  });

  test("that nothing connects to goes to the next after 60 s", () => {
    const unclaimed = facts({ leases: [lease({ state: "granted", claimedAt: null })] });
    expect(judged(unclaimed, 59)).toEqual([]);
    expect(judged(unclaimed, 60)).toMatchObject([{ reason: "never used", mode: "kill" }]);
  });

  describe("that nothing connects to while brokers die", () => {
    const unclaimed = (options: Partial<LeaseFact> = {}) =>
      facts({ leases: [lease({ state: "granted", claimedAt: null, ...options })] });
    const ended = [{ do: "end-lease", leaseId: "lea", requestId: "lea", reason: "never used", mode: "kill" }];
    const chance = [{ do: "give-claim-chance", leaseId: "lea" }];

    test("ends 60 s after the grant without 60 s of one broker", () => {
      expect(judged(unclaimed(), 59, at(50))).toEqual([]);
      expect(judged(unclaimed(), 60, at(50))).toEqual(ended);
    });

    test("has one chance of 10 s after a break", () => {
      expect(judged(unclaimed(), 60, at(51))).toEqual(chance);
      expect(judged(unclaimed(), 61, at(51))).toEqual(ended);
      expect(judged(unclaimed(), 300, at(300))).toEqual(chance);
      expect(judged(unclaimed({ claimChanceAt: at(300) }), 309, at(300))).toEqual([]);
      expect(judged(unclaimed({ claimChanceAt: at(300) }), 310, at(300))).toEqual(ended);
    });

    test("has no second chance from the next broker", () => {
      expect(judged(unclaimed({ claimChanceAt: at(62) }), 71, at(70))).toEqual([]);
      expect(judged(unclaimed({ claimChanceAt: at(62) }), 72, at(70))).toEqual(ended);
    });

    test("ends within 70 s, however often brokers die and come back", () => {
      fc.assert(
        fc.property(fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 100, maxLength: 100 }), (lives) => {
          let claimChanceAt: number | null = null;
          let watchingSince = start;
          let left = 0;
          const ends = () => {
            for (let second = 0, life = 0; second < 1_000; second++, left--) {
              if (left <= 0) {
                left = lives[life++ % lives.length] ?? 1;
                watchingSince = at(second);
              }
              const [measure] = judged(unclaimed({ claimChanceAt }), second, watchingSince);
              if (measure?.do === "end-lease") return second;
              if (measure?.do === "give-claim-chance") claimChanceAt = at(second);
            }
            return Number.POSITIVE_INFINITY;
          };
          const second = ends();
          expect(second).toBeGreaterThanOrEqual(60);
          expect(second).toBeLessThanOrEqual(70);
        }),
      );
    });

    test("is kept for 60 s of unbroken listening when a report lists the owner", () => {
      expect(judged(unclaimed({ isOwnerSeen: true }), 119, at(60))).toEqual([]);
      expect(judged(unclaimed({ isOwnerSeen: true }), 120, at(60))).toEqual(ended);
    });

    test("does not shorten the time of a lease that was claimed", () => {
      const lost = facts({ leases: [lease({ disconnectedAt: at(10) })] });
      expect(judged(lost, 75, at(50))).toEqual([]);
      expect(judged(lost, 80, at(50))).toMatchObject([{ reason: "owner gone" }]);
    });
  });

  test("whose connection is lost is held for 30 s", () => {
    const lost = facts({ leases: [lease({ disconnectedAt: at(10) })] });
    expect(judged(lost, 39)).toEqual([]);
    expect(judged(lost, 40)).toMatchObject([{ reason: "owner gone", mode: "kill" }]);
  });

  test("of a kernel killed during its attach is released within 15 s", () => {
    const unclaimed = lease({ state: "granted", claimedAt: null });
    const report = (seconds: number, alive = [{ ...owner, pid: 41 }]) =>
      facts({ leases: [unclaimed], owners: [{ workspaceId: "ws", reportedAt: at(seconds), alive }] });
    expect(judged(report(2), 14)).toEqual([]);
    expect(judged(report(6, [owner]), 14)).toEqual([]);
    expect(judged(report(6), 6)).toMatchObject([{ reason: "owner gone" }]);
  });

  test("of a restarted kernel with the same pid is not its lease", () => {
    const unclaimed = lease({ state: "granted", claimedAt: null });
    const owners = [{ workspaceId: "ws", reportedAt: at(6), alive: [{ ...owner, startTime: 8 }] }];
    expect(judged(facts({ leases: [unclaimed], owners }), 6)).toMatchObject([{ reason: "owner gone" }]);
  });

  test("of a stopped workspace ends at once", () => {
    expect(judged(facts({ leases: [lease({ workspaceRuns: false })] }), 0)).toMatchObject([
      { reason: "workspace stopped" },
    ]);
  });
});

describe("a request", () => {
  const request = (options: Partial<RequestFact> = {}): RequestFact => ({
    ...{ id: "req", lastPolledAt: start, waitUntil: at(120), workspaceRuns: true, ...options },
  });

  test("whose client has stopped asking leaves the queue after 30 s", () => {
    expect(judged(facts({ requests: [request()] }), 29)).toEqual([]);
    expect(judged(facts({ requests: [request()] }), 30)).toEqual([
      { do: "leave-queue", requestId: "req", state: "cancelled" },
    ]);
  });

  test("that has waited as long as it wanted expires", () => {
    const patient = request({ lastPolledAt: at(119) });
    expect(judged(facts({ requests: [patient] }), 120)).toEqual([
      { do: "leave-queue", requestId: "req", state: "expired" },
    ]);
  });

  test("keeps its place when nobody was there to be asked", () => {
    const waiting = facts({ requests: [request()] });
    expect(judged(waiting, 45, at(40))).toEqual([]);
    expect(judged(waiting, 70, at(40))).toHaveLength(1);
  });
});

describe("a gpud", () => {
  const server = (options: Partial<ServerFact> = {}): ServerFact => ({
    ...{ id: "gsv", state: "online" as const, lastSeenAt: start, holdsLeases: true, isTold: true, ...options },
  });

  test("that is silent is lost after 10 s, and its leases are closed after 60 s", () => {
    expect(judged(facts({ servers: [server()] }), 9)).toEqual([]);
    expect(judged(facts({ servers: [server()] }), 10)).toEqual([
      { do: "lose-server", serverId: "gsv", lastHeard: start },
    ]);
    const lost = facts({ servers: [server({ state: "lost" })] });
    expect(judged(lost, 59)).toEqual([]);
    expect(judged(lost, 60)).toEqual([{ do: "close-server", serverId: "gsv" }]);
  });

  test("that does not come back within 60 s is told of, once", () => {
    const untold = facts({ servers: [server({ state: "lost", holdsLeases: false, isTold: false })] });
    expect(judged(untold, 59)).toEqual([]);
    expect(judged(untold, 60)).toEqual([{ do: "tell-of-loss", serverId: "gsv", lastHeard: start }]);
  });

  test("without leases is only lost", () => {
    expect(judged(facts({ servers: [server({ state: "lost", holdsLeases: false })] }), 600)).toEqual([]);
  });

  test("is not judged by the time in which no broker listened", () => {
    expect(judged(facts({ servers: [server()] }), 305, at(300))).toEqual([]);
    expect(judged(facts({ servers: [server({ state: "lost" })] }), 320, at(300))).toEqual([]);
  });
});

describe("a clock that is set back", () => {
  const owners = [{ workspaceId: "ws", reportedAt: start, alive: [owner] }];
  const given = facts({
    leases: [
      lease({ id: "unclaimed", state: "granted", claimedAt: null, claimChanceAt: start }),
      lease({ id: "seen", state: "granted", claimedAt: null, isOwnerSeen: true }),
      lease({ id: "disconnected", disconnectedAt: start }),
    ],
    parking: [{ id: "parking", since: start }],
    requests: [{ id: "req", lastPolledAt: start, waitUntil: at(120), workspaceRuns: true }],
    servers: [{ id: "gsv", state: "online", lastSeenAt: start, holdsLeases: true, isTold: false }],
    owners,
  });

  test("judges nobody for silence", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10 ** 7 }), (back) => {
        const now = start - back;
        expect(judge(given, now, now)).toEqual([]);
      }),
    );
    expect(limits.closedMs).toBeGreaterThan(limits.silentMs);
  });

  test("keeps nothing that has stayed silent since then", () => {
    const back = start - 3_600_000;
    const done = judge(given, back + limits.unclaimedMs, back);
    expect(done.map((measure) => ("leaseId" in measure ? measure.leaseId : measure.do)).sort()).toEqual(
      ["unclaimed", "seen", "disconnected", "parking", "leave-queue", "lose-server"].sort(),
    );
  });

  test("is not taken for the clock of another broker that is a little ahead", () => {
    const ahead = facts({ servers: [{ ...given.servers[0], lastSeenAt: at(30) } as ServerFact] });
    expect(judge(ahead, start, start - 3_600_000)).toEqual([]);
  });
});
