/** What bit others (the list of the facts on sharing), one test each. */
import { describe, expect, test } from "vitest";
import { parseAmount } from "../contracts/amount.ts";
import { chargeOn } from "./amount.ts";
import { DEFAULT_POLICY } from "./notice.ts";
import { prove } from "./packing.ts";
import { decide, evaluate, evaluateQueue } from "./queue.ts";
import { seenBy, seenByAsker } from "./seen-by.ts";
import { device, holding, quota, waiting, world } from "./testing.ts";
import type { Holding, Quota, Reservation, Round, Waiting, World } from "./types.ts";
import { explainRules } from "./why.ts";

const GIB = 1024 ** 3;
const states = (at: World) => new Map(evaluateQueue(at).map((verdict) => [verdict.requestId, verdict.state]));

test("pre-empt and re-admit: who was taken back asks again and takes nothing back in turn", () => {
  const quotas = [quota("vision", 1000, 1000), quota("nlp", 0, 1000)];
  const lent = holding("l", "0", 1000, { teamId: "nlp", userId: "lin", borrowed: true });
  const before = world({ quotas, holdings: [lent], queue: [waiting("claim", 1000)] });
  const { notices, kept } = evaluate(before);
  expect(notices).toEqual([{ leaseId: "l", notice: { requestId: "claim", at: 0, releaseAt: 300_000 } }]);
  const claim: Waiting = { ...waiting("claim", 1000), keptGpuIds: kept[0]?.gpuIds };
  const again = waiting("again", 1000, { teamId: "nlp", userId: "lin", createdAt: -1 });
  const after = evaluate({ ...before, now: 300_000, holdings: [], queue: [again, claim] });
  expect(after.verdicts.map(({ requestId, state }) => [requestId, state])).toEqual([
    ["claim", "granted"],
    ["again", "queued"],
  ]);
  expect(after.notices).toEqual([]);
  const served = holding("v", "0", 1000, { borrowed: false });
  expect(evaluate({ ...before, holdings: [served], queue: [again] }).notices).toEqual([]);
});

test("a large request is not starved: its device is kept while small ones go on elsewhere", () => {
  const devices = [device("0"), device("1")];
  const quotas = [quota("vision", 0, 2000), quota("nlp", 0, 4000)];
  const half = (id: string, gpuId: string, expiresAt: number) =>
    holding(id, gpuId, 500, { teamId: "nlp", borrowed: true, expiresAt });
  const holdings = [half("a", "0", 60_000), half("b", "1", 900_000)];
  const small = (id: string) => waiting(id, 250, { teamId: "nlp", userId: "lin", createdAt: 5 });
  const queue = [waiting("large", 1000, { createdAt: 1 }), small("s1"), small("s2"), small("s3")];
  const verdicts = evaluateQueue(world({ devices, quotas, holdings, queue }));
  expect(verdicts.map(({ requestId, state }) => [requestId, state])).toEqual([
    ["large", "queued"],
    ["s1", "granted"],
    ["s2", "granted"],
    ["s3", "queued"],
  ]);
  for (const verdict of verdicts) if (verdict.state === "granted") expect(verdict.placement.gpuId).toBe("1");
});

test("a bulk of 16 halves on 8 GPUs: each device exactly twice, whoever asks", () => {
  const devices = Array.from({ length: 8 }, (_, index) => device(String(index)));
  const quotas = [quota("vision", 4000, 8000), quota("nlp", 4000, 8000)];
  const queue = Array.from({ length: 16 }, (_, index) =>
    waiting(`r${String(index).padStart(2, "0")}`, 500, { teamId: index % 3 === 0 ? "nlp" : "vision" }),
  );
  const used = new Map<string, number>();
  for (const verdict of evaluateQueue(world({ devices, quotas, queue }))) {
    const gpuId = verdict.state === "granted" ? verdict.placement.gpuId : "none";
    used.set(gpuId, (used.get(gpuId) ?? 0) + 1);
  }
  expect([...used.values()]).toEqual(Array.from({ length: 8 }, () => 2));
});

test("memory that the driver reserves: two halves of what is allocatable fit, three do not", () => {
  const allocatable = 80 * GIB - 1_234_567_891;
  expect(chargeOn({ milli: 1, memoryBytes: Math.floor(allocatable / 2) }, allocatable)).toBe(500);
  expect(chargeOn({ milli: 1, memoryBytes: Math.floor(allocatable / 2) + 1 }, allocatable)).toBe(501);
  const devices = [device("0", { memoryBytes: allocatable })];
  const queue = ["a", "b", "c"].map((id, createdAt) => waiting(id, 500, { createdAt }));
  const at = world({ devices, queue, quotas: [quota("vision", 0, 4000)] });
  expect([...states(at).values()]).toEqual(["granted", "granted", "queued"]);
});

test("a fraction that is not a number is refused in words", () => {
  for (const typed of ["NaN", "nan", "Infinity", "-0.5", "0", "1e-9", "0x1", "½", ""].slice(0, 8)) {
    expect(parseAmount(typed).ok, typed).toBe(false);
  }
});

test("a gang is placed whole or not at all, on one server and link group where that is possible", () => {
  const at = (id: string, serverId: string, linkGroup?: string) =>
    device(id, { serverId, serverName: serverId, linkGroup });
  const devices = [at("a0", "a"), at("b0", "b", "0"), at("b1", "b", "1"), at("b2", "b", "1"), at("c0", "c")];
  const quotas = [quota("vision", 0, 8000)];
  const place = (milli: number, holdings: Holding[] = []) => {
    const [verdict] = evaluateQueue(
      world({ devices, quotas, holdings, queue: [waiting("r", milli, { maxDevices: 8 })] }),
    );
    return verdict?.state === "granted" ? verdict.placement.pieces.map((piece) => piece.gpuId).sort() : verdict?.state;
  };
  expect(place(2000)).toEqual(["b1", "b2"]);
  expect(place(3000)).toEqual(["b0", "b1", "b2"]);
  expect(place(5000, [holding("x", "c0", 1)])).toBe("queued");
  expect(place(6000)).toBe("refused");
});

test("a quota edited below what is in use ends nothing by itself, grants nothing more, and can be claimed from", () => {
  const holdings = [holding("a", "0", 500), holding("b", "0", 500, { grantedAt: 1 })];
  const quotas = [quota("vision", 500, 500), quota("nlp", 500, 1000)];
  const alone = evaluate(world({ holdings, quotas, queue: [waiting("more", 250)] }));
  expect(alone.verdicts).toMatchObject([{ state: "queued", obstacle: { rule: "team-limit", ever: false } }]);
  expect(alone.notices).toEqual([]);
  const claimed = evaluate(world({ holdings, quotas, queue: [waiting("claim", 500, { teamId: "nlp" })] }));
  expect(claimed.notices.map(({ leaseId }) => leaseId)).toEqual(["b"]);
});

test("a clock that jumps ahead cuts no notice short, and one that jumps back makes nobody wait for the future", () => {
  const quotas = [quota("vision", 1000, 1000), quota("nlp", 0, 1000)];
  const lent = (grantedAt: number) => [
    holding("l", "0", 1000, { teamId: "nlp", borrowed: true, grantedAt, expiresAt: 1e15 }),
  ];
  const releaseAt = (now: number, grantedAt: number) =>
    evaluate(world({ now, quotas, holdings: lent(grantedAt), queue: [waiting("claim", 1000)] })).notices[0]?.notice
      .releaseAt;
  expect(releaseAt(1e12, 0)).toBe(1e12 + DEFAULT_POLICY.noticeMs);
  expect(releaseAt(1_000, 1e12)).toBe(1_000 + DEFAULT_POLICY.minRunMs);
});

test("the same request sent twice is one request: it has one verdict, one place and one grant", () => {
  const queue = [waiting("r", 500), waiting("r", 500), waiting("r2", 500, { createdAt: 1 })];
  const granted = evaluateQueue(world({ queue }));
  expect(granted.map(({ requestId, state }) => [requestId, state])).toEqual([
    ["r", "granted"],
    ["r2", "granted"],
  ]);
  const full = [holding("x", "0", 1000, { teamId: "nlp", userId: "lin" })];
  expect(evaluateQueue(world({ queue, holdings: full }))).toMatchObject([
    { requestId: "r", state: "queued", position: 1, of: 2 },
    { requestId: "r2", state: "queued", position: 2, of: 2 },
  ]);
});

test("a team deleted while its leases run: they still count on the device, may be claimed, and nothing new is granted", () => {
  const holdings = [holding("orphan", "0", 750, { teamId: "gone", userId: "lin", borrowed: false })];
  const queue = [waiting("claim", 500), waiting("more", 100, { teamId: "gone" })];
  const { verdicts, notices } = evaluate(world({ holdings, queue }));
  expect(new Map(verdicts.map((one) => [one.requestId, one.state]))).toEqual(
    new Map([
      ["claim", "queued"],
      ["more", "refused"],
    ]),
  );
  expect(notices.map(({ leaseId }) => leaseId)).toEqual(["orphan"]);
});

describe("the packing of guarantees", () => {
  const devices = ["0", "1"].map((id) => ({ id, name: `soft-${id}`, serverName: "gpu-1" }));
  const promise = (teamName: string, guaranteedMilli: number, largestMilli: number) => ({
    ...{ teamId: teamName, teamName, guaranteedMilli, limitMilli: 4000, largestMilli, windows: [] },
  });
  const nothing = { zone: "UTC", additions: [], reservations: [] };
  const proof = (...quotas: ReturnType<typeof promise>[]) => prove(devices, { ...nothing, quotas }, 0);

  test("is proved for each team's largest request", () => {
    expect(proof(promise("a", 1000, 500), promise("b", 1000, 1000))).toMatchObject({ ok: true });
    expect(proof(promise("a", 1200, 600), promise("b", 800, 400))).toMatchObject({ ok: true });
  });

  test("is refused with what found no place, and the packing that was found", () => {
    // Three pieces of 0.6 do not fit two devices, though together they are less.
    const refused = proof(promise("a", 1800, 600));
    expect(refused).toMatchObject({ ok: false, missing: { teamName: "a", milli: 600 } });
    expect(refused.ok ? [] : refused.packing.map(({ leftMilli }) => leftMilli)).toEqual([400, 400]);
  });

  test("is refused in no time where it is millions of times what there is", () => {
    const huge = { teamId: "a", milli: 100_000_000, unitMilli: 2, from: 0, to: 1 };
    const began = performance.now();
    const reserved = prove(devices, { ...nothing, quotas: [promise("a", 0, 1000)], reservations: [huge] }, 0);
    expect(reserved).toMatchObject({ ok: false, missing: { milli: 2 } });
    expect(proof(promise("a", 100_000_000, 2))).toMatchObject({ ok: false });
    expect(performance.now() - began).toBeLessThan(1_000);
  });

  test("is proved at every breakpoint of the calendar, and while a reservation holds", () => {
    const night = { from: 20 * 60, to: 6 * 60, guaranteedMilli: 2000, limitMilli: 4000 };
    const quotas = [{ ...promise("a", 0, 1000), windows: [night] }, promise("b", 500, 500)];
    expect(prove(devices, { ...nothing, quotas }, 0)).toMatchObject({ ok: false });
    const reservation = { teamId: "b", milli: 1000, unitMilli: 500, from: 1e9, to: 2e9 };
    const plain = [promise("a", 1000, 1000), promise("b", 500, 500)];
    expect(prove(devices, { ...nothing, quotas: plain }, 0)).toMatchObject({ ok: true });
    expect(prove(devices, { ...nothing, quotas: plain, reservations: [reservation] }, 0)).toMatchObject({
      ...{ ok: false, at: 1e9 },
    });
  });

  test("lays no two teams on one device where one of them shares cards with nobody else", () => {
    const apart = (coTenancy: "own-team" | "whole-cards", ...promised: Parameters<typeof promise>) => {
      return { ...promise(...promised), coTenancy };
    };
    expect(proof(apart("own-team", "a", 500, 500), promise("b", 1500, 500))).toMatchObject({
      ...{ ok: false, missing: { teamName: "b", milli: 500 } },
    });
    expect(proof(apart("own-team", "a", 1000, 500), promise("b", 1000, 500))).toMatchObject({ ok: true });
    // Also where its guarantee may be divided anyhow.
    expect(proof(apart("own-team", "a", 1500, 1), promise("b", 500, 1))).toMatchObject({ ok: false });
    expect(proof(apart("own-team", "a", 500, 500), apart("own-team", "b", 1500, 500))).toMatchObject({ ok: false });
    expect(proof(apart("own-team", "a", 1000, 1), promise("b", 1000, 1))).toMatchObject({ ok: true });
    // Halves of a team that is charged whole cards take a card each.
    expect(proof(apart("whole-cards", "a", 1500, 500), promise("b", 500, 500))).toMatchObject({ ok: false });
    expect(proof(apart("whole-cards", "a", 1000, 500), promise("b", 1000, 500))).toMatchObject({ ok: true });
  });

  test("is proved in the week in which an approved request for more holds, too", () => {
    const hour = 3_600_000;
    const noon = 3 * 7 * 24 * hour + 12 * hour;
    const night = { from: 20 * 60, to: 30 * 60, guaranteedMilli: 1500, limitMilli: 4000 };
    const quotas = [{ ...promise("a", 0, 500), windows: [night] }, promise("b", 500, 500)];
    const proved = (hours: number) => {
      const addition = { teamId: "b", guaranteedMilli: 500, limitMilli: 500, from: noon, to: noon + hours * hour };
      return prove(devices, { ...nothing, quotas, additions: [addition] }, 0);
    };
    expect(proved(8)).toMatchObject({ ok: true });
    // 1970 began on a Thursday; the entry is for the night after Monday.
    expect(proved(7 * 24)).toMatchObject({ ok: false, at: noon + (4 * 24 + 8) * hour });
  });
});

describe("the rules besides", () => {
  const asked = (
    options: Partial<Waiting>,
    at: Partial<Omit<World, "quotas">> & { quotas?: ReturnType<typeof quota>[] },
  ) => evaluateQueue(world({ ...at, queue: [waiting("r", 500, options)] }))[0];

  test("a ceiling for each person", () => {
    const quotas = [quota("vision", 0, 1000, { personMilli: 500 })];
    const holdings = [holding("a", "0", 250)];
    expect(asked({}, { quotas, holdings })).toMatchObject({ obstacle: { rule: "person-limit", ever: false } });
    expect(asked({ userId: "lin" }, { quotas, holdings })?.state).toBe("granted");
  });

  test("a budget that is used up", () => {
    const budget = { milliHours: 1000, usedMilliHours: 1000, endsAt: 99 };
    expect(asked({}, { quotas: [quota("vision", 0, 1000, { budget })] })).toMatchObject({
      ...{ state: "refused", obstacle: { rule: "budget", resetsAt: 99 } },
    });
  });

  test("stop switches, for all, a team or a person", () => {
    const stop = (scope: "all" | "team" | "user", subjectId?: string) => ({
      ...{ stops: [{ scope, reason: "maintenance", ...(subjectId ? { subjectId } : {}) }] },
    });
    expect(asked({}, stop("all"))).toMatchObject({ state: "queued", obstacle: { rule: "stopped" } });
    expect(asked({}, stop("team", "vision"))).toMatchObject({ state: "queued" });
    expect(asked({}, stop("team", "nlp"))?.state).toBe("granted");
    expect(asked({}, stop("user", "ada"))).toMatchObject({ state: "queued" });
  });

  test("a calendar that takes batch by night only", () => {
    const open = { kinds: ["batch" as const], nextAt: 77 };
    expect(asked({}, { open })).toMatchObject({ obstacle: { rule: "calendar", opensAt: 77 } });
    expect(asked({ kind: "batch" }, { open })?.state).toBe("granted");
  });

  test("who asks for what the team may use later waits for it, holds up nobody, and reads from when", () => {
    const now = Date.UTC(2026, 10, 23, 12);
    const evening = Date.UTC(2026, 10, 23, 20);
    const plain = { guaranteedMilli: 500, limitMilli: 1000 };
    const more = { guaranteedMilli: 1000, limitMilli: 2000 };
    const by = (from: number, to: number) => {
      return { zone: "UTC", plain, windows: [{ from, to, ...more }], additions: [] };
    };
    const at = (calendar?: Quota["calendar"], rest: Omit<Partial<World>, "quotas"> = {}) =>
      world({
        ...{ now, devices: [device("0"), device("1")], ...rest },
        quotas: [quota("vision", 500, 1000, calendar && { calendar })],
      });
    const nightly = at(by(20 * 60, 8 * 60));
    const large = waiting("large", 2000, { maxDevices: 2, createdAt: now });
    const later = { at: evening, milli: 2000 };
    const verdict = decide(large, nightly);
    expect(verdict).toMatchObject({ state: "queued", obstacle: { rule: "team-limit", ever: false, more: later } });
    const small = waiting("small", 1000, { createdAt: now + 1 });
    const asked = { ...nightly, queue: [large, small] };
    expect(states(asked)).toEqual(
      new Map([
        ["large", "queued"],
        ["small", "granted"],
      ]),
    );
    expect(explainRules("large", seenByAsker(large, asked), evaluateQueue(asked))).toMatchObject({
      reason: {
        rule: "team-limit",
        message:
          "team vision may use at most 1.0 soft at once; you asked for 2. From 2026-11-23 20:00 UTC on it may use 2.0.",
      },
      estimate: { likelySeconds: 8 * 3600, basis: "the calendar" },
    });
    const night = { ...nightly, now: evening, quotas: new Map([["vision", quota("vision", 1000, 2000)]]) };
    expect(decide(large, night).state).toBe("granted");
    const guaranteed = waiting("own", 1000, { guaranteedOnly: true, createdAt: now });
    expect(decide(guaranteed, nightly)).toMatchObject({
      ...{ state: "queued", obstacle: { rule: "guaranteed", more: { at: evening, milli: 1000 } } },
    });
    // Nobody waits until Saturday; the refusal says that it could be asked for then.
    const saturday = 5 * 24 * 60;
    expect(decide(large, at(by(saturday, saturday + 60)))).toMatchObject({
      ...{ state: "refused", obstacle: { ever: true, more: { at: Date.UTC(2026, 10, 28), milli: 2000 } } },
    });
    expect(decide(large, at())).toMatchObject({ obstacle: { rule: "team-limit", ever: true } });
    const policy = { minRunMs: 0, noticeMs: 60_000 };
    const from = now + 3_600_000;
    const reserved = { id: "v", teamId: "vision", milli: 1000, unitMilli: 1000, from, to: from + 3_600_000 };
    expect(decide(large, at(undefined, { policy, reservations: [reserved] }))).toMatchObject({
      ...{ state: "queued", obstacle: { more: { at: from, milli: 2000 } } },
    });
    expect(decide(large, at(undefined, { policy, reservations: [{ ...reserved, userId: "lin" }] }))).toMatchObject({
      state: "refused",
    });
  });

  test("what the environment needs of zone, distance, CUDA and driver", () => {
    const known = { cudaVersion: 12_040, driverVersion: "550.90.07" };
    const devices = [device("0", { zone: "a", rttUs: 100, ...known }), device("1", { zone: "b" })];
    const gpu = (needs: Waiting["needs"]) => {
      const verdict = asked({ needs }, { devices });
      return verdict?.state === "granted" ? verdict.placement.gpuId : verdict;
    };
    expect(gpu({ zone: "b" })).toBe("1");
    expect(gpu({ maxRttUs: 200 })).toBe("0");
    expect(gpu({ minCudaVersion: 12_080 })).toMatchObject({ state: "refused", obstacle: { rule: "needs" } });
    expect(gpu({ minDriverVersion: "550.54.14" })).toBe("0");
    expect(gpu({ minDriverVersion: "550.100" })).toMatchObject({ state: "refused", obstacle: { rule: "needs" } });
  });

  test("a team that shares cards with nobody else, and one that takes whole cards", () => {
    const devices = [device("0"), device("1")];
    const holdings = [holding("x", "0", 250, { teamId: "nlp" })];
    const under = (coTenancy: "own-team" | "whole-cards") =>
      asked({}, { devices, holdings, quotas: [quota("vision", 0, 2000, { coTenancy }), quota("nlp", 0, 1000)] });
    expect(under("own-team")).toMatchObject({ placement: { gpuId: "1", milli: 500 } });
    expect(under("whole-cards")).toMatchObject({ placement: { gpuId: "1", milli: 1000 } });
  });

  test("a reservation keeps its part for its team, ready when it begins", () => {
    const reservations = [{ id: "rsv", teamId: "vision", milli: 1000, unitMilli: 500, from: 0, to: 1000 }];
    const quotas = [quota("vision", 0, 500), quota("nlp", 0, 1000)];
    const other = { teamId: "nlp", userId: "lin" };
    expect(asked(other, { reservations, quotas })).toMatchObject({ obstacle: { rule: "free-device" } });
    expect(asked(other, { reservations, quotas, now: 2000 })?.state).toBe("granted");
    expect(asked({}, { reservations, quotas })).toMatchObject({ state: "granted", placement: { borrowed: false } });
  });

  test("a reservation for one person keeps its part for them, inside their ceiling, and takes nothing from their team", () => {
    const devices = [device("0"), device("1")];
    const class10 = { id: "rsv", teamId: "vision", userId: "ada", who: "Ada", milli: 1000, unitMilli: 500 };
    const reservations = [{ ...class10, from: 0, to: 1000 }];
    const quotas = [quota("vision", 500, 500), quota("nlp", 0, 2000)];
    const at = (options: Partial<World>) => world({ devices, reservations, ...options, quotas });
    const queue = [
      waiting("max1", 500, { userId: "max", createdAt: 1 }),
      waiting("max2", 500, { userId: "max", createdAt: 2 }),
      waiting("lin", 500, { teamId: "nlp", userId: "lin", createdAt: 3 }),
      waiting("lin2", 500, { teamId: "nlp", userId: "lin", createdAt: 4 }),
      waiting("ada1", 500, { createdAt: 5 }),
      waiting("ada2", 500, { createdAt: 6 }),
    ];
    const granted = (one: World) =>
      evaluateQueue(one).flatMap(({ requestId, state }) => (state === "granted" ? [requestId] : []));
    // One behind whom the team's limit holds up does not hold up her, and of others each has what is left.
    expect(granted(at({ queue }))).toEqual(["max1", "ada1", "ada2", "lin"]);
    expect(granted(at({ queue: queue.slice(0, 4) }))).toEqual(["max1", "lin"]);
    expect(granted(at({ queue: queue.slice(0, 4), now: 2000 }))).toEqual(["max1", "lin", "lin2"]);
    const lent = ["0", "1"].map((gpuId) => holding(`l${gpuId}`, gpuId, 1000, { teamId: "nlp", userId: "lin" }));
    const taken = (one: World) => evaluate(one).notices.map(({ leaseId }) => leaseId);
    expect(taken(at({ holdings: lent }))).toEqual(["l0"]);
    // What she holds already counts towards it.
    const hers = holding("hers", "1", 1000);
    expect(taken(at({ holdings: [lent[0] as Holding, hers] }))).toEqual([]);
    const ceiling = [quota("vision", 500, 500, { personMilli: 500 }), quota("nlp", 0, 2000)];
    expect(granted(world({ devices, reservations, quotas: ceiling, queue: queue.slice(4) }))).toEqual(["ada1"]);
  });

  describe("one reservation after another", () => {
    const [hour, notice] = [3_600_000, 120_000];
    const policy = { minRunMs: 0, noticeMs: notice };
    const devices = [device("0"), device("1"), device("2")];
    const first = { id: "one", teamId: "nlp", milli: 1000, unitMilli: 1000, from: 0, to: hour };
    const second = { id: "two", teamId: "vision", milli: 1000, unitMilli: 1000, from: hour, to: 2 * hour };
    const reservations = [first, second];
    // With both of them more would be promised than there is.
    const quotas = [quota("vision", 0, 1000), quota("nlp", 0, 1000), quota("bio", 2000, 2000)];
    const own = ["1", "2"].map((gpuId) => holding(`own${gpuId}`, gpuId, 1000, { teamId: "bio", userId: "cyd" }));
    const expiresAt = 3 * hour;
    const ofFirst = holding("first", "0", 1000, { teamId: "nlp", userId: "lin", expiresAt });
    const at = (now: number, options: Partial<World> = {}) =>
      world({ devices, policy, reservations, holdings: [...own, ofFirst], now, ...options, quotas });

    test("takes from nobody before the other is over, and then from who has it no longer", () => {
      const lead = notice + 30_000;
      expect(evaluate(at(hour - lead - 1)).notices).toEqual([]);
      const soon = evaluate(at(hour - lead));
      const told = { requestId: "two/0", at: hour - lead, releaseAt: hour };
      expect(soon.notices).toEqual([{ leaseId: "first", notice: told }]);
      const holdings = [...own, { ...ofFirst, notice: told }];
      // Told once; and a team that has longer notice is told so early that it is over in time.
      expect(evaluate(at(hour - 1, { holdings }))).toMatchObject({ notices: [], withdrawn: [] });
      const claim = waiting("claim", 1000);
      expect(evaluate(at(hour, { holdings, queue: [claim] }))).toMatchObject({
        verdicts: [{ state: "queued", obstacle: { rule: "reclaim", releaseAt: hour } }],
        notices: [{ leaseId: "first", notice: { releaseAt: hour } }],
        withdrawn: [],
      });
      expect(evaluate(at(hour, { holdings: own, queue: [claim] })).verdicts[0]?.state).toBe("granted");
      // It is nobody's before it begins.
      expect(evaluate(at(hour - 1, { holdings: own, queue: [claim] })).verdicts[0]?.state).toBe("queued");
    });

    test("has what is kept for the other, and takes it from nobody a second time", () => {
      const lent = holding("lent", "1", 1000, { teamId: "bio", userId: "cyd", borrowed: true, expiresAt });
      const lending = [quota("vision", 0, 1000), quota("nlp", 0, 1000), quota("bio", 0, 2000)];
      const alone = { ...at(hour - notice, { holdings: [lent] }), devices: devices.slice(0, 2) };
      const world = { ...alone, quotas: new Map(lending.map((one) => [one.teamId, one])) };
      expect(evaluate(world).notices).toEqual([]);
      // Of what is larger the rest is made.
      const larger = { ...second, milli: 2000, unitMilli: 1000 };
      expect(evaluate({ ...world, reservations: [first, larger] }).notices).toHaveLength(1);
    });
  });

  describe("room for a reservation", () => {
    const [hour, minute] = [3_600_000, 60_000];
    const policy = { minRunMs: 0, noticeMs: 2 * minute };
    const lend = (id: string, gpuId: string, milli: number, options: Partial<Holding> = {}) =>
      holding(id, gpuId, milli, { teamId: "nlp", userId: "lin", borrowed: true, expiresAt: 3 * hour, ...options });
    const reserve = (id: string, milli: number, unitMilli: number, options: Partial<Reservation> = {}) => {
      return { id, teamId: "vision", milli, unitMilli, from: hour, to: 2 * hour, ...options };
    };
    const quotas = [quota("vision", 0, 1000), quota("nlp", 0, 9000), quota("bio", 0, 9000)];
    const two = [device("0"), device("1")];
    const at = (now: number, holdings: Holding[], reservations: Reservation[], options: Partial<World> = {}) =>
      evaluate(world({ devices: two, policy, holdings, reservations, now, ...options, quotas }));
    const told = ({ notices }: ReturnType<typeof evaluate>) =>
      notices.map(({ leaseId, notice }) => [leaseId, notice.releaseAt]).sort();
    const lead = hour - 2 * minute - 30_000;
    const due = hour - 30_000;

    test("is made for all of it at once, on one device and on several", () => {
      const on = (gpuId: string) => ["a", "b", "c", "d"].map((id) => lend(`${id}${gpuId}`, gpuId, 250));
      const all = at(lead, [...on("0"), ...on("1")], [reserve("r", 2000, 250)]);
      expect(all.notices).toHaveLength(8);
      const halves = [lend("x", "0", 500), lend("y", "0", 500)];
      expect(told(at(lead, halves, [reserve("r", 1000, 500)], { devices: [device("0")] }))).toEqual([
        ["x", due],
        ["y", due],
      ]);
    });

    test("is made where it was begun to be made, whatever ends meanwhile", () => {
      const before = [lend("a1", "0", 600), lend("a2", "0", 300), lend("b", "1", 500)];
      const first = at(lead, before, [reserve("r", 1000, 1000)]);
      expect(told(first)).toEqual([["b", due]]);
      const after = before
        .slice(1)
        .map((one) => (one.leaseId === "b" ? { ...one, notice: first.notices[0]?.notice } : one));
      expect(at(hour - 10_000, after, [reserve("r", 1000, 1000)])).toMatchObject({
        ...{ notices: [], withdrawn: [] },
      });
    });

    test("is planned for the largest parts first, in whatever order they were reserved", () => {
      const halves = [lend("x", "0", 500), lend("y", "1", 500)];
      const [a, b] = [reserve("a", 500, 500), reserve("b", 500, 500)];
      const c = reserve("c", 1000, 1000);
      for (const order of [
        [a, b, c],
        [c, a, b],
        [b, c, a],
      ])
        expect(at(lead, halves, order).notices).toHaveLength(2);
    });

    test("counts what is held for the one that began first, and keeps what is left of a unit", () => {
      const own = holding("own", "0", 1000, { expiresAt: 3 * hour });
      const running = reserve("one", 1000, 1000, { from: 0, to: 3 * hour });
      for (const order of [
        [running, reserve("two", 1000, 1000)],
        [reserve("two", 1000, 1000), running],
      ])
        expect(told(at(lead, [own, lend("l", "1", 1000)], order))).toEqual([["l", due]]);
      const part = holding("part", "0", 250);
      const now = { from: 0, to: hour };
      const mixed = [reserve("one", 1000, 1000, now), reserve("two", 500, 250, now)];
      const queue = [waiting("other", 1000, { teamId: "nlp", userId: "lin" })];
      expect(at(0, [part], mixed, { queue }).verdicts[0]?.state).toBe("queued");
    });

    test("is begun so early that every lease has had its minimum run time, and takes nobody before it is needed", () => {
      const slow = { minRunMs: 10 * minute, noticeMs: 2 * minute };
      const young = lend("young", "0", 1000, { grantedAt: hour - 11 * minute });
      const full = [young, lend("old", "1", 1000)];
      expect(told(at(hour - 10 * minute - 30_000, full, [reserve("r", 2000, 1000)], { policy: slow }))).toEqual([
        ["old", due],
        ["young", due],
      ]);
      // The times of a team that holds nothing count for nobody.
      const patient = [...quotas.slice(0, 2), quota("bio", 0, 9000, { times: { noticeMs: 30 * minute } })];
      const world1 = world({
        devices: two,
        policy,
        holdings: full,
        reservations: [reserve("r", 2000, 1000)],
        quotas: patient,
      });
      expect(evaluate({ ...world1, now: hour - 30 * minute }).notices).toEqual([]);
    });

    test("for a person is not made where room is being made for what they ask already", () => {
      const hers = [reserve("r", 1000, 1000, { userId: "ada" })];
      const holdings = [lend("a", "0", 1000), lend("b", "1", 1000)];
      const rich = [quota("vision", 1000, 1000), ...quotas.slice(1)];
      const asks = world({ devices: two, policy, holdings, reservations: hers, now: lead, quotas: rich });
      expect(evaluate({ ...asks, queue: [waiting("now", 1000)] }).notices).toHaveLength(1);
      expect(evaluate({ ...asks, queue: [waiting("now", 1000, { userId: "bob" })] }).notices).toHaveLength(2);
      // It comes too late where one of those who go has to have run for long.
      const slow = [rich[0] as Quota, quota("nlp", 0, 9000, { times: { minRunMs: 20 * minute } })];
      const young = holdings.map((one) => (one.leaseId === "a" ? { ...one, grantedAt: lead - minute } : one));
      const late = { ...asks, holdings: young, quotas: new Map(slow.map((one) => [one.teamId, one])) };
      expect(evaluate({ ...late, queue: [waiting("now", 1000, { pinnedGpuId: "0" })] }).notices).toHaveLength(2);
    });

    test("that is being made for one is there for the next one, too", () => {
      const [r1, r2] = [
        reserve("r1", 1000, 1000, { to: hour + minute }),
        reserve("r2", 1000, 1000, { teamId: "bio", from: hour + minute }),
      ];
      expect(at(lead + minute, [lend("a", "0", 1000), lend("b", "1", 1000)], [r1, r2]).notices).toHaveLength(1);
    });
  });

  test("nobody is taken back for a reservation of which nobody could be granted a part", () => {
    const devices = [device("0"), device("1")];
    const class10 = { id: "rsv", teamId: "vision", milli: 2000, unitMilli: 1000, from: 0, to: 3_600_000 };
    const holdings = [holding("lent", "0", 1000, { teamId: "nlp", userId: "lin", borrowed: true })];
    const queue = [waiting("more", 1000, { teamId: "nlp", userId: "lin" })];
    const under = (options: Partial<Quota> = {}, stops: World["stops"] = []) =>
      evaluate(
        world({
          ...{ devices, holdings, queue, stops, reservations: [class10] },
          quotas: [quota("vision", 0, 0, options), quota("nlp", 0, 4000)],
        }),
      );
    expect(under().notices).toHaveLength(1);
    const spent = { milliHours: 10, usedMilliHours: 10, endsAt: 7_200_000 };
    const without = [
      under({ budget: spent }),
      under({ personMilli: 500 }),
      under({}, [{ scope: "team", subjectId: "vision", reason: "audit" }]),
    ];
    for (const round of without) {
      // What is free is kept for it all the same.
      expect(round).toMatchObject({ notices: [], verdicts: [{ state: "queued", obstacle: { rule: "free-device" } }] });
    }
    expect(under({ budget: { ...spent, endsAt: 0 } }).notices).toHaveLength(1);
  });

  test("who waits for one device while room is made there is not overtaken by their own team", () => {
    const devices = [device("0"), device("1")];
    const quotas = [quota("vision", 2000, 2000, { personMilli: 1000 }), quota("nlp", 0, 1000)];
    const holdings = [holding("lent", "0", 250, { teamId: "nlp", userId: "lin", borrowed: true })];
    const queue = [
      waiting("pinned", 1000, { pinnedGpuId: "0", createdAt: 1 }),
      waiting("other", 250, { createdAt: 2 }),
      waiting("colleague", 1000, { userId: "max", createdAt: 3 }),
    ];
    const round = evaluate(world({ devices, quotas, holdings, queue }));
    expect(round.notices).toHaveLength(1);
    expect(states(world({ devices, quotas, holdings, queue }))).toEqual(
      new Map([
        ["pinned", "queued"],
        ["other", "queued"],
        ["colleague", "granted"],
      ]),
    );
  });

  test("who waits because of a reservation reads for whom it is, as far as they may see that", () => {
    const reservations = [
      { id: "rsv", teamId: "vision", userId: "ada", who: "Ada", milli: 500, unitMilli: 500, from: 0, to: 3_600_000 },
    ];
    const quotas = [quota("vision", 0, 500), quota("nlp", 0, 1000)];
    const holdings = [holding("m", "0", 500, { userId: "max", who: "Max" })];
    const why = (request: Waiting, from = 0) => {
      const policy = { minRunMs: 0, noticeMs: 120_000 };
      const there = reservations.map((one) => ({ ...one, from }));
      const asked = world({ reservations: there, policy, quotas, holdings, queue: [request] });
      const reader = { userId: request.userId, teamIds: [request.teamId], seesAll: false };
      return explainRules(request.requestId, seenBy(reader, asked), evaluateQueue(asked)).reason?.message;
    };
    expect(why(waiting("max", 500, { userId: "max" }))).toBe(
      "team vision holds 0.5 of the 1.0 soft that its limit allows; you asked for 0.5. Of that 0.5 soft for Ada is reserved until 1970-01-01 01:00 UTC.",
    );
    expect(why(waiting("lin", 500, { teamId: "nlp", userId: "lin" }))).toBe(
      "0.5 of soft-0 on gpu-1 is free and kept for others. " +
        "0.5 soft for team vision is reserved until 1970-01-01 01:00 UTC.",
    );
    expect(why(waiting("lin", 500, { teamId: "nlp", userId: "lin" }), 60_000)).toContain(
      "0.5 soft for team vision is reserved from 1970-01-01 00:01 UTC until 1970-01-01 01:00 UTC.",
    );
  });

  test("a team's own minimum run time and notice hold for its leases, the pool's for all others", () => {
    const devices = [device("0"), device("1")];
    const policy = { minRunMs: 60_000, noticeMs: 30_000 };
    const released = (times: Partial<typeof policy>) => {
      const quotas = [quota("vision", 2000, 2000), quota("nlp", 0, 1000, { times }), quota("bio", 0, 1000)];
      const holdings = [
        holding("nlp's", "0", 1000, { teamId: "nlp", grantedAt: 100_000 }),
        holding("bio's", "1", 1000, { teamId: "bio", grantedAt: 100_000 }),
      ];
      const queue = [waiting("one", 1000), waiting("two", 1000, { createdAt: 1 })];
      const { notices } = evaluate(world({ devices, quotas, holdings, queue, policy, now: 101_000 }));
      return Object.fromEntries(notices.map(({ leaseId, notice }) => [leaseId, notice.releaseAt]));
    };
    expect(released({})).toEqual({ "nlp's": 160_000, "bio's": 160_000 });
    expect(released({ minRunMs: 0 })).toEqual({ "nlp's": 131_000, "bio's": 160_000 });
    expect(released({ minRunMs: 0, noticeMs: 10_000 })).toEqual({ "nlp's": 111_000, "bio's": 160_000 });
    expect(released({ noticeMs: 90_000 })).toEqual({ "nlp's": 191_000, "bio's": 160_000 });
  });

  describe("room for two teams on one device", () => {
    const quotas = [quota("vision", 500, 1000), quota("nlp", 500, 1000), quota("bio", 0, 2000)];
    const queue = [waiting("vision's", 500), waiting("nlp's", 500, { teamId: "nlp", createdAt: 1 })];
    const borrowed = (leaseId: string, gpuId: string, milli: number) =>
      holding(leaseId, gpuId, milli, { teamId: "bio", borrowed: true });
    const told = (round: Round) => round.notices.map(({ leaseId, notice }) => [leaseId, notice.requestId]);

    test("is made for both at once, and whose has gone first comes first", () => {
      const holdings = [borrowed("a", "0", 500), borrowed("b", "0", 500)];
      const before = world({ quotas, queue, holdings });
      const round = evaluate(before);
      expect(told(round)).toEqual([
        ["a", "vision's"],
        ["b", "nlp's"],
      ]);
      const kept = queue.map((one) => ({ ...one, keptGpuIds: ["0"] }));
      const [one, other] = holdings.map((lease, index) => ({ ...lease, notice: round.notices[index]?.notice }));
      if (one === undefined || other === undefined) throw new Error("there are two");
      const next = (gone: Holding) => evaluate({ ...before, queue: kept, holdings: gone === one ? [other] : [one] });
      const granted = ({ verdicts }: Round) => verdicts.filter(({ state }) => state === "granted");
      expect(granted(next(one))).toMatchObject([{ requestId: "vision's" }]);
      expect(granted(next(other))).toMatchObject([{ requestId: "nlp's" }]);
      expect(next(one)).toMatchObject({ notices: [], withdrawn: [] });
    });

    test("is left to each of them, whatever those leave who have not gone yet", () => {
      const three = [
        quota("vision", 700, 1000),
        quota("nlp", 100, 1000),
        quota("ops", 60, 1000),
        quota("bio", 0, 2000),
      ];
      const asks = [
        waiting("large", 700),
        waiting("small", 100, { teamId: "nlp", createdAt: 1 }),
        waiting("smaller", 60, { teamId: "ops", createdAt: 2 }),
      ];
      const holdings = [borrowed("a", "0", 200), borrowed("b", "0", 250)];
      const before = world({ quotas: three, queue: asks, holdings });
      const round = evaluate(before);
      expect(told(round)).toEqual([
        ["a", "large"],
        ["b", "small"],
      ]);
      // The smallest comes where the second leaves more than is needed, when that has gone; not where the first waits.
      expect(round.verdicts.map((one) => one.state === "queued" && one.obstacle)).toMatchObject([
        { rule: "reclaim", leaseIds: ["a"] },
        { rule: "reclaim", leaseIds: ["b"] },
        { rule: "reclaim", leaseIds: ["b"] },
      ]);
      const kept = asks.map((one, index) => (index < 2 ? { ...one, keptGpuIds: ["0"] } : one));
      const next = {
        ...before,
        queue: kept,
        holdings: [{ ...(holdings[1] as Holding), notice: round.notices[1]?.notice }],
      };
      expect(evaluate(next).verdicts.filter(({ state }) => state === "granted")).toMatchObject([
        { requestId: "large" },
      ]);
    });

    test("is made elsewhere where that is sooner", () => {
      const slow = [
        ...quotas.slice(0, 2),
        quota("bio", 0, 2000, { times: { minRunMs: 3_600_000 } }),
        quota("ops", 0, 1000),
      ];
      const holdings = [
        borrowed("a", "0", 1000),
        holding("b", "1", 1000, { teamId: "ops", borrowed: true, grantedAt: 1 }),
      ];
      const pinned = { ...(queue[0] as Waiting), pinnedGpuId: "0" };
      const at = world({
        devices: [device("0"), device("1")],
        quotas: slow,
        holdings,
        queue: [pinned, ...queue.slice(1)],
      });
      expect(told(evaluate(at))).toEqual([
        ["a", "vision's"],
        ["b", "nlp's"],
      ]);
    });

    test("is made once where one that goes leaves enough for both", () => {
      const devices = [device("0"), device("1")];
      const holdings = [borrowed("a", "0", 1000), borrowed("b", "1", 1000)];
      const round = evaluate(world({ devices, quotas, queue, holdings }));
      expect(told(round)).toEqual([["a", "vision's"]]);
      expect(round.verdicts).toMatchObject([
        { requestId: "vision's", obstacle: { rule: "reclaim", leaseIds: ["a"] } },
        { requestId: "nlp's", obstacle: { rule: "reclaim", leaseIds: ["a"] } },
      ]);
    });
  });

  test("a lost server scales guarantees down in proportion", () => {
    const devices = [device("0"), device("1", { state: "away" })];
    const quotas = [quota("vision", 1000, 2000), quota("nlp", 1000, 2000)];
    const holdings = [
      holding("a", "0", 500, { teamId: "nlp" }),
      holding("b", "0", 500, { teamId: "nlp", grantedAt: 1 }),
    ];
    const { notices } = evaluate(world({ devices, quotas, holdings, queue: [waiting("claim", 500)] }));
    expect(notices.map(({ leaseId }) => leaseId)).toEqual(["b"]);
  });

  test("the surplus goes by priority, then by weight and past use, in rounds", () => {
    const devices = Array.from({ length: 3 }, (_, index) => device(String(index)));
    const order = (...quotas: ReturnType<typeof quota>[]) => {
      const queue = quotas.flatMap(({ teamId }, team) =>
        Array.from({ length: 3 }, (_, index) => waiting(`${teamId}${index}`, 1000, { teamId, createdAt: team })),
      );
      return evaluateQueue(world({ devices, quotas, queue }))
        .filter((verdict) => verdict.state === "granted")
        .map((verdict) => verdict.requestId);
    };
    expect(order(quota("a", 0, 9000), quota("b", 0, 9000, { priority: 1 }))).toEqual(["b0", "b1", "b2"]);
    expect(order(quota("a", 0, 9000), quota("b", 0, 9000, { weight: 2 }))).toEqual(["a0", "b0", "b1"]);
    expect(order(quota("a", 0, 9000, { recentMilli: 5000 }), quota("b", 0, 9000))).toEqual(["b0", "b1", "b2"]);
  });

  test("past use moves nobody who is inside the guarantee", () => {
    const first = (guaranteedMilli: number) => {
      const quotas = [quota("a", guaranteedMilli, 1000, { recentMilli: 9000 }), quota("b", guaranteedMilli, 1000)];
      const queue = [waiting("a0", 500, { teamId: "a" }), waiting("b0", 1000, { teamId: "b", createdAt: 1 })];
      return evaluateQueue(world({ quotas, queue })).flatMap(({ requestId, state }) =>
        state === "granted" ? [requestId] : [],
      );
    };
    expect(first(0)).toEqual(["b0"]);
    expect(first(500)).toEqual(["a0"]);
  });
});

test("who has room made for it takes nothing that one before it waits for", () => {
  const devices = [device("0"), device("1")];
  const quotas = [quota("vision", 500, 1000), quota("nlp", 500, 1000), quota("bio", 1000, 1000)];
  const soon = { expiresAt: 300_000, memoryBytes: 0 };
  const holdings = [
    holding("lent", "0", 750, { borrowed: true }),
    holding("kept", "0", 125, { teamId: "nlp", ...soon }),
    holding("own", "1", 250, { borrowed: true, ...soon }),
  ];
  const whole = waiting("whole", 1000, { teamId: "bio", createdAt: 1 });
  const quarter = waiting("quarter", 250, { teamId: "nlp", createdAt: 2 });
  const before = world({ devices, quotas, holdings, queue: [whole, quarter] });
  const first = evaluate(before);
  expect(first.kept).toEqual([{ requestId: "quarter", gpuIds: ["0"] }]);
  const told = holdings.map((one) => ({
    ...one,
    notice: first.notices.find(({ leaseId }) => leaseId === one.leaseId)?.notice,
  }));
  const second = evaluate({ ...before, holdings: told, queue: [whole, { ...quarter, keptGpuIds: ["0"] }] });
  expect(second.verdicts.map(({ requestId, state }) => [requestId, state])).toEqual([
    ["whole", "queued"],
    ["quarter", "queued"],
  ]);
  expect({ ...second, verdicts: [] }).toMatchObject({ verdicts: [], notices: [], withdrawn: [], kept: [] });
});

test("memory that costs more than the guarantee leaves is borrowed, after those inside theirs", () => {
  const quotas = [quota("vision", 500, 1000), quota("nlp", 500, 1000)];
  // 6 of 8 GiB are charged 0.75 here, and would be charged 0.375 on the other device.
  const devices = [device("0"), device("1", { memoryBytes: 16 * GIB })];
  const full = holding("full", "1", 1000, { teamId: "nlp", guaranteedOnly: true });
  const memory = waiting("memory", 1, { memoryBytes: 6 * GIB, createdAt: 1 });
  const half = waiting("half", 500, { teamId: "bio", createdAt: 2 });
  const queue = [memory, half];
  const verdicts = evaluateQueue(
    world({ devices, quotas: [...quotas, quota("bio", 500, 500)], holdings: [full], queue }),
  );
  expect(verdicts.map(({ requestId, state }) => [requestId, state])).toEqual([
    ["half", "granted"],
    ["memory", "queued"],
  ]);
});
