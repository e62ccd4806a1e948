import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { chargeOn } from "./amount.ts";
import { estimateWait } from "./estimate.ts";
import { decide, evaluateQueue, inOrder } from "./queue.ts";
import { explain, fitsNow } from "./reasons.ts";
import { device, holding, quota, waiting, world } from "./testing.ts";
import type { Device, Holding, Verdict, Waiting, World } from "./types.ts";

const GIB = 1024 ** 3;
const refused = (verdict: Verdict) => (verdict.state === "refused" ? verdict.obstacle : verdict);
const queued = (verdict: Verdict) => (verdict.state === "queued" ? verdict.obstacle : verdict);
const gpuOf = (verdict: Verdict) => (verdict.state === "granted" ? verdict.placement.gpuId : verdict.state);

describe("placement", () => {
  const two = [device("0"), device("1")];

  test("packs fractions together and keeps whole GPUs whole", () => {
    const before = world({ devices: two, holdings: [holding("a", "1", 250)] });
    expect(gpuOf(decide(waiting("r", 500), before))).toBe("1");
    expect(gpuOf(decide(waiting("r", 750), before))).toBe("1");
    expect(gpuOf(decide(waiting("r", 1000, { teamId: "nlp" }), before))).toBe("0");
  });

  test("takes the device on which least is left over", () => {
    const devices = [device("0"), device("1"), device("2")];
    const holdings = [holding("a", "0", 250, { teamId: "x" }), holding("b", "1", 500, { teamId: "x" })];
    expect(gpuOf(decide(waiting("r", 500), world({ devices, holdings })))).toBe("1");
    expect(gpuOf(decide(waiting("r", 600), world({ devices, holdings })))).toBe("0");
  });

  test("lets two halves really fit one device, and a third wait", () => {
    const quotas = [quota("vision", 500, 2000)];
    const queue = ["a", "b", "c"].map((id, at) => waiting(id, 500, { createdAt: at }));
    const verdicts = evaluateQueue(world({ queue, quotas }));
    expect(verdicts.map((verdict) => verdict.state)).toEqual(["granted", "granted", "queued"]);
  });

  test("charges memory as the part of the device that it takes", () => {
    const verdict = decide(waiting("r", 1, { memoryBytes: 3 * GIB }), world());
    expect(verdict).toMatchObject({ state: "granted", placement: { milli: 375, memoryBytes: 3 * GIB } });
  });

  test("takes nothing on a device that drains, is away or is gone", () => {
    for (const state of ["draining", "away"] as const) {
      const verdict = decide(waiting("r", 500), world({ devices: [device("0", { state })] }));
      expect(queued(verdict)).toEqual({ rule: "no-server" });
    }
    const verdict = decide(waiting("r", 500), world({ devices: [device("0", { state: "gone" })] }));
    expect(queued(verdict)).toEqual({ rule: "no-server" });
  });

  test("places a bulk of 16 halves on 8 GPUs, each exactly twice", () => {
    const devices = Array.from({ length: 8 }, (_, index) => device(String(index)));
    const queue = Array.from({ length: 16 }, (_, index) => waiting(`r${String(index).padStart(2, "0")}`, 500));
    const verdicts = evaluateQueue(world({ devices, queue, quotas: [quota("vision", 0, 8000)] }));
    const used = new Map<string, number>();
    for (const verdict of verdicts) used.set(gpuOf(verdict), (used.get(gpuOf(verdict)) ?? 0) + 1);
    expect([...used.values()]).toEqual(Array.from({ length: 8 }, () => 2));
  });
});

describe("quota", () => {
  test("marks as borrowed what is above the guaranteed part", () => {
    const queue = [waiting("a", 500), waiting("b", 500, { createdAt: 1 })];
    const verdicts = evaluateQueue(world({ queue }));
    expect(verdicts.map((verdict) => verdict.state === "granted" && verdict.placement.borrowed)).toEqual([false, true]);
  });

  test("gives the guaranteed part back when a guaranteed lease ends while a borrowed one goes on", () => {
    const before = world({ holdings: [holding("b", "0", 500, { borrowed: true })] });
    const verdict = decide(waiting("r", 500, { guaranteedOnly: true }), before);
    expect(verdict).toMatchObject({ state: "granted", placement: { borrowed: false } });
  });

  test("makes a --guaranteed request wait for the guaranteed part alone", () => {
    const before = world({ holdings: [holding("a", "0", 500)] });
    expect(queued(decide(waiting("r", 500, { guaranteedOnly: true }), before))).toEqual({
      rule: "guaranteed",
      ever: false,
    });
    expect(refused(decide(waiting("r", 750, { guaranteedOnly: true }), before))).toEqual({
      rule: "guaranteed",
      ever: true,
    });
  });

  test("refuses what the limit never allows, what one notebook cannot have, and what no device has", () => {
    expect(refused(decide(waiting("r", 2000), world()))).toEqual({ rule: "team-limit", ever: true });
    const rich = world({ quotas: [quota("vision", 0, 8000)] });
    expect(refused(decide(waiting("r", 2000), rich))).toEqual({ rule: "amount", why: "several-gpus" });
    const memory = waiting("r", 1, { memoryBytes: 9 * GIB });
    expect(refused(decide(memory, rich))).toEqual({ rule: "amount", why: "more-memory-than-a-device" });
    expect(refused(decide(waiting("r", 500, { teamId: "other" }), rich))).toEqual({ rule: "team-limit", ever: true });
    expect(refused(decide(waiting("r", 500, { teamId: "other" }), world({ devices: [] })))).toEqual({
      rule: "gpu-type",
    });
  });

  test("edited below what is in use lets what runs run, and grants nothing more", () => {
    const before = world({ holdings: [holding("a", "0", 750)], quotas: [quota("vision", 0, 500)] });
    expect(queued(decide(waiting("r", 250), before))).toEqual({ rule: "team-limit", ever: false });
    expect(refused(decide(waiting("r", 750), before))).toEqual({ rule: "team-limit", ever: true });
  });

  test("of a team that was deleted refuses what waits", () => {
    const before = world({ quotas: [] });
    expect(refused(decide(waiting("r", 500), before))).toEqual({ rule: "team-limit", ever: true });
  });
});

describe("order", () => {
  const half = holding("x", "0", 500, { teamId: "nlp", userId: "lin", who: "Lin" });

  test("a large request is not starved by small ones behind it", () => {
    const queue = [waiting("large", 1000, { createdAt: 1 }), waiting("small", 250, { createdAt: 2, teamId: "nlp" })];
    const verdicts = evaluateQueue(world({ queue, holdings: [half] }));
    expect(verdicts.map(queued)).toEqual([{ rule: "free-device" }, { rule: "order", behind: "large" }]);
    expect(verdicts).toMatchObject([
      { position: 1, of: 2 },
      { position: 2, of: 2 },
    ]);
  });

  test("a team at its limit holds up itself alone", () => {
    const devices = [device("0"), device("1")];
    const holdings = [holding("a", "0", 1000)];
    const queue = [
      waiting("first", 500, { createdAt: 1 }),
      waiting("own", 250, { createdAt: 2 }),
      waiting("other", 500, { createdAt: 3, teamId: "nlp" }),
    ];
    const verdicts = evaluateQueue(world({ devices, holdings, queue }));
    expect(verdicts.map((verdict) => verdict.state)).toEqual(["queued", "queued", "granted"]);
  });

  test("a small request does not overtake a larger one of its team that waits for the limit", () => {
    const queue = [waiting("large", 750, { createdAt: 1 }), waiting("small", 250, { createdAt: 2 })];
    const holdings = [holding("a", "0", 500)];
    const devices = [device("0"), device("1")];
    const verdicts = evaluateQueue(world({ devices, queue, holdings }));
    expect(verdicts.map(queued)).toEqual([
      { rule: "team-limit", ever: false },
      { rule: "order", behind: "large" },
    ]);
  });

  test("a pinned request waits for its device alone, and keeps it from those behind", () => {
    const devices = [device("0"), device("1")];
    const queue = [
      waiting("pinned", 1000, { createdAt: 1, pinnedGpuId: "0" }),
      waiting("any", 500, { createdAt: 2, teamId: "nlp" }),
      waiting("next", 750, { createdAt: 3, teamId: "more" }),
    ];
    const quotas = [quota("vision", 0, 1000), quota("nlp", 0, 1000), quota("more", 0, 1000)];
    const verdicts = evaluateQueue(
      world({ devices, queue, quotas, holdings: [holding("x", "0", 250, { teamId: "x" })] }),
    );
    expect(queued(verdicts[0] as Verdict)).toEqual({ rule: "pinned", why: "busy" });
    expect(gpuOf(verdicts[1] as Verdict)).toBe("1");
    expect(queued(verdicts[2] as Verdict)).toMatchObject({ rule: "order", behind: "pinned" });
  });

  test("a pinned request whose device left or drains is refused, not left to wait for ever", () => {
    const request = waiting("r", 500, { pinnedGpuId: "0" });
    const at = (state: Device["state"]) => decide(request, world({ devices: [device("0", { state }), device("1")] }));
    expect(refused(at("gone"))).toEqual({ rule: "pinned", why: "gone" });
    expect(refused(at("draining"))).toEqual({ rule: "pinned", why: "draining" });
    expect(queued(at("away"))).toEqual({ rule: "pinned", why: "away" });
    expect(gpuOf(at("open"))).toBe("0");
  });
});

describe("reasons", () => {
  const full = world({
    now: 600_000,
    holdings: [
      holding("a", "0", 500, { label: "kmeans.ipynb", lastWorkAt: 240_000 }),
      holding("b", "0", 500, { userId: "lin", who: "Lin", borrowed: true, lastWorkAt: 590_000 }),
    ],
  });
  const reasonOf = (request: Waiting, at: World) => {
    const verdict = decide(request, at);
    if (verdict.state === "granted") throw new Error("granted");
    return explain(request, verdict.obstacle, at);
  };

  test("name the team, who holds what and for how long it has been idle, and what to do", () => {
    expect(reasonOf(waiting("r", 500), full)).toEqual({
      rule: "team-limit",
      message: "team vision is at its limit (1.0 of 1.0 soft).",
      hint: "run %gpu detach in kmeans.ipynb",
      holders: [
        { amount: "0.5", who: "you", label: "kmeans.ipynb", idleSeconds: 360 },
        { amount: "0.5", who: "Lin", idleSeconds: 10 },
      ],
      largestMilli: 1000,
    });
  });

  test("of a refusal say what fits now and what is the largest possible", () => {
    const quotas = [quota("vision", 500, 1000)];
    const half = world({ quotas, holdings: [holding("a", "0", 500)] });
    expect(reasonOf(waiting("r", 2000), half)).toMatchObject({
      message: "team vision may use at most 1.0 soft at once; you asked for 2.",
      hint: "%gpu attach 0.5",
      fitsNowMilli: 500,
      largestMilli: 1000,
    });
  });

  test("of a wait for a device name the largest free piece", () => {
    const holdings = [holding("x", "0", 750, { teamId: "nlp", userId: "lin", who: "Lin" })];
    expect(reasonOf(waiting("r", 500), world({ holdings }))).toMatchObject({
      rule: "free-device",
      message: "No device has 0.5 free: the largest free piece is 0.25 of soft-0 on gpu-1.",
      hint: "%gpu attach 0.25",
      fitsNowMilli: 250,
    });
  });

  test("of a place in the queue name who is first", () => {
    const holdings = [holding("x", "0", 500, { teamId: "x" })];
    const queue = [waiting("first", 750, { teamId: "nlp", who: "Lin", createdAt: -1 })];
    expect(reasonOf(waiting("r", 500), world({ holdings, queue }))).toMatchObject({
      rule: "order",
      message: "Lin (team nlp) waits first for 0.75 soft.",
    });
  });

  test("never promise what would not be granted", () => {
    fc.assert(
      fc.property(worlds(), (at) => {
        const asker = waiting("asker", 1, { createdAt: Number.MAX_SAFE_INTEGER });
        const fits = fitsNow(asker, at);
        return fits === 0 || decide({ ...asker, milli: fits }, at).state === "granted";
      }),
    );
  });
});

describe("the estimate", () => {
  test("is the end of the lease that makes room", () => {
    const holdings = [holding("a", "0", 500, { expiresAt: 60_000 }), holding("b", "0", 500, { expiresAt: 120_000 })];
    const queue = [waiting("one", 500, { createdAt: 1, lengthMs: 600_000 }), waiting("two", 500, { createdAt: 2 })];
    const at = world({ holdings, queue, quotas: [quota("vision", 0, 1000)] });
    expect(estimateWait("one", at)).toBe(60);
    expect(estimateWait("two", at)).toBe(120);
  });

  test("is missing when no end of a lease helps", () => {
    const at = world({ devices: [device("0", { state: "away" })], queue: [waiting("r", 500)] });
    expect(estimateWait("r", at)).toBeUndefined();
  });

  test("stands a clock that has jumped past every end", () => {
    const at = world({
      now: 10 ** 12,
      holdings: [holding("a", "0", 1000, { expiresAt: 5 })],
      queue: [waiting("r", 500)],
    });
    expect(estimateWait("r", at)).toBe(0);
  });
});

/** Worlds in which what is held was granted by the rules, as it always is. */
function worlds(): fc.Arbitrary<World> {
  const teams = ["vision", "nlp", "bio"];
  const request = fc.record({
    milli: fc.integer({ min: 1, max: 1000 }),
    memoryBytes: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 12 * GIB })),
    teamId: fc.constantFrom(...teams),
    guaranteedOnly: fc.boolean(),
    pinned: fc.option(fc.nat(3), { nil: undefined, freq: 5 }),
    createdAt: fc.nat(20),
  });
  const devices = fc.array(
    fc.record({
      memoryBytes: fc.constantFrom(8 * GIB, 16 * GIB),
      state: fc.constantFrom("open", "open", "open", "draining", "away"),
    }),
    { minLength: 1, maxLength: 4 },
  );
  const quotas = fc.tuple(
    ...teams.map(() => fc.tuple(fc.integer({ min: 0, max: 1500 }), fc.integer({ min: 0, max: 3000 }))),
  );
  return fc
    .record({
      devices,
      quotas,
      held: fc.array(request, { maxLength: 10 }),
      queue: fc.array(request, { maxLength: 10 }),
    })
    .map(({ devices: given, quotas: limits, held, queue }) => {
      const empty = world({
        devices: given.map((one, index) => device(String(index), one as Partial<Device>)),
        quotas: limits.map(([a, b], index) => quota(teams[index] ?? "", Math.min(a, b), Math.max(a, b))),
      });
      const asWaiting =
        (prefix: string) =>
        (one: (typeof held)[number], index: number): Waiting => {
          const { pinned, ...rest } = one;
          const pinnedGpuId = pinned === undefined ? {} : { pinnedGpuId: String(pinned) };
          return waiting(`${prefix}${index}`, rest.milli, { ...rest, ...pinnedGpuId });
        };
      const holdings = apply(empty, held.map(asWaiting("h")));
      return { ...empty, holdings, queue: queue.map(asWaiting("q")) };
    });
}

/** What is held after these requests were decided one by one. */
function apply(start: World, requests: Waiting[]): Holding[] {
  let holdings = start.holdings;
  for (const request of requests) {
    const verdict = decide(request, { ...start, holdings });
    if (verdict.state === "granted") holdings = [...holdings, held(request, verdict)];
  }
  return holdings;
}

function held(request: Waiting, verdict: Extract<Verdict, { state: "granted" }>): Holding {
  const { teamId, userId, requestId } = request;
  return holding(requestId, verdict.placement.gpuId, verdict.placement.milli, { ...verdict.placement, teamId, userId });
}

function granting(at: World): { verdicts: Verdict[]; holdings: Holding[] } {
  const verdicts = evaluateQueue(at);
  const fresh = verdicts.flatMap((verdict) => {
    const request = at.queue.find((one) => one.requestId === verdict.requestId);
    return verdict.state === "granted" && request ? [held(request, verdict)] : [];
  });
  return { verdicts, holdings: [...at.holdings, ...fresh] };
}

describe("whatever is asked", () => {
  const runs = { numRuns: 500 };

  test("no device is ever over-committed, in compute or in memory", () => {
    fc.assert(
      fc.property(worlds(), (at) => {
        const { holdings } = granting(at);
        return at.devices.every((one) => {
          const there = holdings.filter((lease) => lease.gpuId === one.id);
          const milli = there.reduce((sum, lease) => sum + lease.milli, 0);
          const memory = there.reduce((sum, lease) => sum + lease.memoryBytes, 0);
          return milli <= 1000 && memory <= one.memoryBytes;
        });
      }),
      runs,
    );
  });

  test("no team is ever above its limit, and nothing inside the guaranteed part is above it", () => {
    fc.assert(
      fc.property(worlds(), (at) => {
        const { holdings } = granting(at);
        return [...at.quotas.values()].every((one) => {
          const own = holdings.filter((lease) => lease.teamId === one.teamId);
          const all = own.reduce((sum, lease) => sum + lease.milli, 0);
          const inside = own.reduce((sum, lease) => sum + (lease.borrowed ? 0 : lease.milli), 0);
          return all <= one.limitMilli && inside <= one.guaranteedMilli;
        });
      }),
      runs,
    );
  });

  test("nobody is lost: every request has exactly one verdict, and places run from 1 without a gap", () => {
    fc.assert(
      fc.property(worlds(), (at) => {
        const verdicts = evaluateQueue(at);
        const places = verdicts.flatMap((verdict) => (verdict.state === "queued" ? [verdict.position] : []));
        expect(verdicts.map((verdict) => verdict.requestId)).toEqual(inOrder(at.queue).map((one) => one.requestId));
        expect(places).toEqual(places.map((_, index) => index + 1));
      }),
      runs,
    );
  });

  test("nobody of the same team and kind is granted before one who came earlier and asked for as much or less", () => {
    fc.assert(
      fc.property(worlds(), (at) => {
        const verdicts = new Map(evaluateQueue(at).map((verdict) => [verdict.requestId, verdict]));
        const queue = inOrder(at.queue).filter((one) => one.pinnedGpuId === undefined && !one.guaranteedOnly);
        return queue.every((early, index) =>
          queue.slice(index + 1).every((late) => {
            if (late.teamId !== early.teamId) return true;
            return !(
              verdicts.get(early.requestId)?.state === "queued" && verdicts.get(late.requestId)?.state === "granted"
            );
          }),
        );
      }),
      runs,
    );
  });

  test("nobody passes a request that waits for any device", () => {
    fc.assert(
      fc.property(worlds(), (at) => {
        const verdicts = evaluateQueue(at);
        const head = verdicts.findIndex(
          (verdict) => verdict.state === "queued" && verdict.obstacle.rule === "free-device",
        );
        return head < 0 || verdicts.slice(head + 1).every((verdict) => verdict.state !== "granted");
      }),
      runs,
    );
  });

  test("nobody waits who would be granted alone: the first in the queue is stopped by a rule, not by nothing", () => {
    fc.assert(
      fc.property(worlds(), (at) => {
        const { verdicts, holdings } = granting(at);
        const first = verdicts.find((verdict) => verdict.state === "queued");
        const request = at.queue.find((one) => one.requestId === first?.requestId);
        if (request === undefined) return true;
        return decide(request, { ...at, holdings, queue: [] }).state === "queued";
      }),
      runs,
    );
  });

  test("a refusal holds on an empty pool too, and a wait does not", () => {
    fc.assert(
      fc.property(worlds(), (at) => {
        const open = at.devices.map((one) => ({
          ...one,
          state: one.state === "draining" ? ("draining" as const) : ("open" as const),
        }));
        return evaluateQueue(at).every((verdict) => {
          const request = at.queue.find((one) => one.requestId === verdict.requestId);
          if (request === undefined || verdict.state === "granted") return true;
          const alone = decide(request, { ...at, devices: open, holdings: [], queue: [] });
          if (verdict.state === "refused") return alone.state === "refused";
          const anyOpen = open.some((one) => one.state === "open" && chargeOn(request, one.memoryBytes) <= 1000);
          return alone.state === "granted" || !anyOpen || smallDeviceLimit(request, at, open);
        });
      }),
      runs,
    );
  });
});

/** A memory amount can fit the quota on a large device that drains, and not on the smaller ones that are open. */
function smallDeviceLimit(request: Waiting, at: World, devices: Device[]): boolean {
  const quotaOf = at.quotas.get(request.teamId);
  const limit = request.guaranteedOnly ? quotaOf?.guaranteedMilli : quotaOf?.limitMilli;
  const charges = devices.filter((one) => one.state === "open").map((one) => chargeOn(request, one.memoryBytes));
  return Math.min(...charges) > (limit ?? 0);
}
