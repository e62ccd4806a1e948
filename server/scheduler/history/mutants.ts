/** Schedulers with one deliberate fault each: every one of them must be found by the properties. */
import { evaluate } from "../queue.ts";
import type { Placement, Round, World } from "../types.ts";
import type { Evaluate } from "./machine.ts";

const grants = (round: Round, change: (placement: Placement, world: World) => Placement, world: World): Round => ({
  ...round,
  verdicts: round.verdicts.map((verdict) =>
    verdict.state === "granted" ? { ...verdict, placement: change(verdict.placement, world) } : verdict,
  ),
});
const quotas = (world: World, change: (quota: NonNullable<ReturnType<World["quotas"]["get"]>>) => object): World => ({
  ...world,
  quotas: new Map([...world.quotas].map(([id, quota]) => [id, { ...quota, ...change(quota) }])),
});

export const mutants: Record<string, Evaluate> = {
  "does not see leases that have been told to go": (world) =>
    evaluate({ ...world, holdings: world.holdings.filter((one) => one.notice === undefined) }),
  "forgets the limit of a team": (world) => evaluate(quotas(world, () => ({ limitMilli: 1_000_000 }))),
  "forgets the ceiling of a person": (world) => evaluate(quotas(world, () => ({ personMilli: undefined }))),
  "places on devices that are draining or away": (world) =>
    evaluate({ ...world, devices: world.devices.map((one) => ({ ...one, state: "open" as const })) }),
  "places a part of a lease of several GPUs": (world) =>
    grants(evaluate(world), (placement) => ({ ...placement, pieces: placement.pieces.slice(0, 1) }), world),
  "serves the newest first": (world) =>
    evaluate({ ...world, queue: world.queue.map((one) => ({ ...one, createdAt: -one.createdAt })) }),
  "never takes anything back": (world) => ({
    ...evaluate({ ...world, holdings: world.holdings.map((one) => ({ ...one, guaranteedOnly: true })) }),
  }),
  "takes back what was never to be taken back": (world) =>
    evaluate({
      ...world,
      holdings: world.holdings.map((one) => ({
        ...one,
        guaranteedOnly: false,
        borrowed: true,
        grantedAt: -one.grantedAt,
      })),
    }),
  "takes back without the minimum run time": (world) =>
    evaluate({ ...world, policy: { minRunMs: 0, noticeMs: world.policy?.noticeMs ?? 0 } }),
  "takes back without notice": (world) =>
    evaluate({ ...world, policy: { noticeMs: 0, minRunMs: world.policy?.minRunMs ?? 0 } }),
  "takes back for teams above their own share": (world) =>
    evaluate(quotas(world, (quota) => ({ guaranteedMilli: quota.limitMilli }))),
  "makes room for the first in line only": (world) => {
    const round = evaluate(world);
    const first = round.verdicts.find(({ state }) => state === "queued")?.requestId;
    return {
      ...round,
      notices: round.notices.filter(({ notice }) => notice.requestId === first),
      kept: round.kept.filter(({ requestId, gpuIds }) => requestId === first || gpuIds.length === 0),
      verdicts: round.verdicts.map((one) =>
        one.state === "queued" && one.obstacle.rule === "reclaim" && one.requestId !== first
          ? { ...one, obstacle: { rule: "free-device" } }
          : one,
      ),
    };
  },
  "makes room for one at a time on each device": (world) => {
    const round = evaluate(world);
    const gpuOf = new Map(world.holdings.map((one) => [one.groupId, one.gpuId]));
    const claimants = new Map<string | undefined, string>(
      world.holdings.flatMap(({ gpuId, notice }) => (notice === undefined ? [] : [[gpuId, notice.requestId]])),
    );
    const second = new Set<string>();
    for (const { leaseId, notice } of round.notices) {
      const first = claimants.get(gpuOf.get(leaseId)) ?? notice.requestId;
      claimants.set(gpuOf.get(leaseId), first);
      if (notice.requestId !== first) second.add(notice.requestId);
    }
    return {
      ...round,
      notices: round.notices.filter(({ notice }) => !second.has(notice.requestId)),
      kept: round.kept.filter(({ requestId }) => !second.has(requestId)),
      verdicts: round.verdicts.map((one) => {
        if (!second.has(one.requestId) || one.state !== "queued") return one;
        return { ...one, obstacle: { rule: "order", behind: [...claimants.values()][0] ?? "" } };
      }),
    };
  },
  "does not keep what it made free for the claimant": (world) => ({ ...evaluate(world), kept: [] }),
  "tells one more than it needs": (world) => {
    const round = evaluate(world);
    const [first] = round.notices;
    const other = world.holdings.find(
      (one) =>
        !round.notices.some(({ leaseId }) => leaseId === one.groupId) && one.notice === undefined && one.borrowed,
    );
    if (first === undefined || other?.groupId === undefined) return round;
    return { ...round, notices: [...round.notices, { ...first, leaseId: other.groupId }] };
  },
  "lets anybody share a card": (world) => evaluate(quotas(world, () => ({ coTenancy: "any" }))),
  "lets all of a team use what is reserved for one": (world) =>
    evaluate({ ...world, reservations: world.reservations?.map(({ userId: _, ...rest }) => rest) ?? [] }),
  "takes more for reservations than is reserved": (world) =>
    evaluate({ ...world, reservations: world.reservations?.map((one) => ({ ...one, milli: 4 * one.milli })) ?? [] }),
  "loses one who waits": (world) => evaluate({ ...world, queue: world.queue.slice(0, 3) }),
  "books one device of a lease of several": (world) =>
    grants(evaluate(world), (placement) => ({ ...placement, milli: placement.pieces[0]?.milli ?? 0 }), world),
  "makes room at its leisure": (world) =>
    evaluate({
      ...world,
      policy: { noticeMs: 10 * (world.policy?.noticeMs ?? 0), minRunMs: world.policy?.minRunMs ?? 0 },
    }),
  "keeps to the plain quota whatever the calendar says": (world) =>
    evaluate(quotas(world, ({ calendar }) => calendar?.plain ?? {})),
  "does not see what the calendar brings": (world) => evaluate(quotas(world, () => ({ calendar: undefined }))),
  "takes any kind of work at any time": (world) => evaluate({ ...world, open: { kinds: ["interactive", "batch"] } }),
  "does not see the stops": (world) => evaluate({ ...world, stops: [] }),
  "places wherever there is room": (world) =>
    evaluate({ ...world, queue: world.queue.map(({ needs: _, pinnedGpuId: __, ...rest }) => rest) }),
  "forgets the budget of a team": (world) => evaluate(quotas(world, () => ({ budget: undefined }))),
  "charges less than the memory takes": (world) =>
    grants(
      evaluate(world),
      (placement) => ({
        ...placement,
        pieces: placement.pieces.map((piece) => ({ ...piece, milli: Math.min(piece.milli, 250) })),
      }),
      world,
    ),
};
