import { describe, expect, test } from "vitest";
import { estimate, estimates, estimateWait } from "./estimate.ts";
import { decide, evaluateQueue } from "./queue.ts";
import { explain } from "./reasons.ts";
import { seenByAsker } from "./seen-by.ts";
import { device, holding, quota, waiting, world } from "./testing.ts";
import type { Device, Verdict, Waiting, World } from "./types.ts";
import { explainRules } from "./why.ts";

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
    // The larger device is elsewhere.
    const apart = [device("0", { zone: "a" }), device("1", { zone: "b", memoryBytes: 80 * GIB })];
    const here = waiting("r", 1, { memoryBytes: 20 * GIB, needs: { zone: "a" } });
    const there = { ...here, needs: { zone: "b" } };
    expect(refused(decide(here, { ...rich, devices: apart }))).toMatchObject({ why: "more-memory-than-a-device" });
    expect(decide(there, { ...rich, devices: apart }).state).toBe("granted");
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
    expect(verdicts.map(queued)).toEqual([
      { rule: "free-device", likelyAt: 3_600_000 },
      { rule: "order", behind: "large" },
    ]);
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
    const states = new Map(verdicts.map((verdict) => [verdict.requestId, verdict.state]));
    expect([states.get("first"), states.get("own"), states.get("other")]).toEqual(["queued", "queued", "granted"]);
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
    return explain(request, verdict.obstacle, seenByAsker(request, at));
  };
  const rulesFor = (request: Waiting, at: World) => {
    const asked = { ...at, queue: [request] };
    return explainRules(request.requestId, seenByAsker(request, asked), evaluateQueue(asked)).rules;
  };

  test("name the team, who holds what and for how long it has been idle, and what to do", () => {
    expect(reasonOf(waiting("r", 500), full)).toEqual({
      rule: "team-limit",
      gpuType: "soft",
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
      hint: "%gpu attach 0.5 --type soft",
      fitsNowMilli: 500,
      largestMilli: 1000,
    });
  });

  test("of a wait for a device name the largest free piece", () => {
    const holdings = [holding("x", "0", 750, { teamId: "nlp", userId: "lin", who: "Lin" })];
    // A team that has nothing guaranteed takes nothing back.
    const quotas = [quota("vision", 0, 1000), quota("nlp", 500, 1000)];
    expect(reasonOf(waiting("r", 500), world({ holdings, quotas }))).toMatchObject({
      rule: "free-device",
      message: "No device has 0.5 free: the largest free piece is 0.25 of soft-0 on gpu-1.",
      hint: "%gpu attach 0.25 --type soft",
      fitsNowMilli: 250,
    });
  });

  test("of a wait for a device name those that are drained", () => {
    const draining = (count: number) =>
      Array.from({ length: count }, (_, index) => device(String(index + 1), { state: "draining" }));
    const holdings = [holding("x", "0", 1000, { teamId: "nlp", userId: "lin", who: "Lin" })];
    const quotas = [quota("vision", 0, 1000), quota("nlp", 1000, 1000)];
    const message = (devices: Device[]) => reasonOf(waiting("r", 500), world({ devices, holdings, quotas })).message;
    const full = "No device has 0.5 free: every soft device that takes leases is full.";
    expect(message([device("0")])).toBe(full);
    expect(message([device("0"), ...draining(1)])).toBe(
      `${full} soft-1 on gpu-1 is being drained and takes no new leases.`,
    );
    expect(message([device("0"), ...draining(4)])).toBe(
      `${full} soft-1 on gpu-1, soft-2 on gpu-1 and 2 more are being drained and take no new leases.`,
    );
    expect(reasonOf(waiting("r", 500), world({ devices: draining(1), quotas }))).toMatchObject({
      rule: "no-server",
      message: expect.stringMatching(/ soft-1 on gpu-1 is being drained and takes no new leases\.$/) as string,
    });
  });

  test("of a wait tell how far a guarantee is scaled down, and whether by a drain or a lost server", () => {
    const holdings = [holding("x", "0", 1000, { teamId: "nlp", userId: "lin", who: "Lin" })];
    const quotas = [quota("vision", 1000, 2000), quota("nlp", 1000, 2000)];
    const message = (...states: Device["state"][]) => {
      const devices = [device("0"), ...states.map((state, index) => device(String(index + 1), { state }))];
      return reasonOf(waiting("r", 600), world({ devices, holdings, quotas })).message;
    };
    const scaled = "0.5 of the 1.0 of team vision is guaranteed until they are back.";
    expect(message("draining")).toContain(`1 of 2 soft devices are being drained: ${scaled}`);
    expect(message("away")).toContain(`1 of 2 soft devices are away: ${scaled}`);
    expect(message("away", "draining")).toContain(`2 of 3 soft devices are away or being drained: ${scaled}`);
    expect(message("away", "gone")).toContain(`1 of 2 soft devices are away: ${scaled}`);
  });

  test("tell that there are fewer devices than teams are guaranteed, where none can come back", () => {
    const quotas = [quota("vision", 1000, 2000), quota("nlp", 2000, 2000)];
    const inside = waiting("r", 500, { guaranteedOnly: true });
    const fewer =
      "There are fewer soft devices than teams are guaranteed: 0.333 of the 1.0 of team vision is guaranteed.";
    for (const more of [[], [device("1", { state: "gone" })], [device("1", { state: "away" })]] as Device[][]) {
      const at = world({ devices: [device("0"), ...more], quotas });
      const { message } = reasonOf(inside, at);
      expect(message).toContain(fewer);
      expect(message).not.toContain("until");
    }
    const holdings = [holding("x", "0", 1000, { teamId: "nlp", userId: "lin", who: "Lin" })];
    const at = world({ devices: [device("0")], quotas, holdings });
    expect(rulesFor(waiting("r", 500), at).find(({ rule }) => rule === "guaranteed")?.message).toBe(
      "0.333 of 1.0 guaranteed: there are fewer devices than teams are guaranteed",
    );
  });

  test("that name a guarantee name what is left of it while servers are away", () => {
    const quotas = [quota("vision", 1000, 2000), quota("nlp", 1000, 2000)];
    const devices = [device("0"), device("1", { state: "away" })];
    const holdings = [holding("x", "0", 500)];
    const lent = holding("l", "0", 500, { teamId: "nlp", userId: "lin", borrowed: true, who: "Lin" });
    const at = world({ devices, holdings, quotas });
    const scaled = "1 of 2 soft devices are away: 0.5 of the 1.0 of team vision is guaranteed until they are back.";
    const inside = waiting("r", 500, { guaranteedOnly: true });
    expect(reasonOf(inside, at)).toMatchObject({
      rule: "guaranteed",
      message: `team vision uses 0.5 of its 0.5 guaranteed soft. ${scaled}`,
    });
    const claim = reasonOf(waiting("r", 500), world({ devices, holdings: [{ ...lent, milli: 1000 }], quotas }));
    expect(claim.rule).toBe("reclaim");
    expect(claim.message).toContain(scaled);
    const first = waiting("first", 750, { teamId: "nlp", who: "Lin", createdAt: -1 });
    const behind = reasonOf(
      waiting("r", 250),
      world({ devices, holdings: [...holdings, lent], queue: [first], quotas }),
    );
    expect(behind.message).toContain(scaled);
    expect(rulesFor(waiting("r", 600), at).find(({ rule }) => rule === "guaranteed")?.message).toBe(
      "0.5 of 1.0 guaranteed until servers are back",
    );
  });

  test("of a place in the queue name who is first, a person of another team by the team alone", () => {
    const holdings = [holding("x", "0", 500, { teamId: "x" })];
    const queue = [waiting("first", 750, { teamId: "nlp", userId: "lin", who: "Lin", createdAt: -1 })];
    const quotas = [quota("vision", 0, 1000), quota("nlp", 0, 1000)];
    expect(reasonOf(waiting("r", 500), world({ holdings, queue, quotas }))).toMatchObject({
      rule: "order",
      message: "Somebody (team nlp) waits first for 0.75 soft.",
    });
    expect(reasonOf(waiting("r", 500, { teamId: "nlp" }), world({ holdings, queue, quotas }))).toMatchObject({
      rule: "order",
      message: "Lin (team nlp) waits first for 0.75 soft.",
    });
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

  test("estimates both limits of a busy lease, and only the idle limit of an idle one", () => {
    const told = (lastWorkAt: number) => {
      const now = 10_000_000;
      const holdings = [holding("a", "0", 1000, { expiresAt: now + 14_400_000, lastWorkAt })];
      const quotas = [quota("vision", 0, 1000, { idleMs: 1_200_000 })];
      return estimate("one", world({ now, holdings, queue: [waiting("one", 500, { createdAt: 1 })], quotas }));
    };
    expect(told(10_000_000)).toMatchObject({ soonest: 1200, low: 1200, likely: 14_400 });
    expect(told(9_900_000)).toMatchObject({ low: 550, likely: 1100 });
    expect(told(9_900_000)?.soonest).toBeUndefined();
  });

  test("is the same for those who are looked at together, whoever of them", () => {
    const ends = [60_000, 120_000, 180_000, 240_000];
    const devices = ends.map((_, n) => device(String(n)));
    const holdings = ends.map((expiresAt, n) => holding(`l${n}`, String(n), 1000, { expiresAt }));
    const queue = ["one", "two", "three", "four"].map((id, n) =>
      waiting(id, n % 2 === 0 ? 1000 : 500, { createdAt: n }),
    );
    const at = world({ devices, holdings, queue, quotas: [quota("vision", 0, 4000)] });
    for (const ids of [
      ["one", "two", "three", "four"],
      ["four", "two"],
      ["three", "nobody"],
    ]) {
      const together = estimates(ids, at, evaluateQueue(at));
      for (const id of ids) expect(together.get(id)).toEqual(estimate(id, at));
    }
    expect(estimateWait("four", at)).toBeGreaterThan(60);
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
