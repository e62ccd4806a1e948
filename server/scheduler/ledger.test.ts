import fc from "fast-check";
import { expect, test } from "vitest";
import { histories, play } from "./history/history.ts";
import { addsUp, deviceLedger, type LeasedStretch, type StateStretch, sumLedgers } from "./ledger.ts";
import { evaluate } from "./queue.ts";

test("a lease that worked for half of its time: used, held idle, and the rest of the card idle", () => {
  const leased = [{ from: 0, to: 100, milli: 500, teamId: "t", userId: "u", usedMs: 50 }];
  expect(deviceLedger([{ from: 0, state: "open" }], leased, 0, 200)).toEqual({
    ...{ wall: 200_000, used: 25_000, heldIdle: 25_000, idle: 150_000, draining: 0, lost: 0 },
  });
});

test("what is held on a device that drains or is lost is held; what is not, drains or is lost", () => {
  const states: StateStretch[] = [
    { from: 0, to: 10, state: "open" },
    { from: 10, to: 20, state: "draining" },
    { from: 20, state: "lost" },
  ];
  const leased = [{ from: 5, to: 15, milli: 1000, teamId: "t", userId: "u" }];
  expect(deviceLedger(states, leased, 0, 30)).toEqual({
    ...{ wall: 30_000, used: 0, heldIdle: 10_000, idle: 5_000, draining: 5_000, lost: 10_000 },
  });
});

test("on random histories every moment of every device is in one part, and the parts sum to wall time exactly", () => {
  fc.assert(
    fc.property(histories, (history) => {
      const { happened } = play(history, evaluate);
      const end = Math.max(...happened.map(({ after }) => after.now)) + 1;
      const ledgers = history.setup.devices.map(({ id }) => {
        const { states, leased } = recorded(happened, id);
        const ledger = deviceLedger(states, leased, 0, end);
        expect(addsUp(ledger)).toBe(true);
        expect(ledger.wall).toBe(1000 * end);
        for (const part of Object.values(ledger)) expect(part).toBeGreaterThanOrEqual(0);
        return ledger;
      });
      expect(sumLedgers(ledgers).wall).toBe(history.setup.devices.length * 1000 * end);
    }),
    { numRuns: 200 },
  );
});

/** What the rows would say: a stretch for each state of the device, and for each lease on it. */
function recorded(happened: ReturnType<typeof play>["happened"], gpuId: string) {
  const states: StateStretch[] = [];
  const leased = new Map<string, LeasedStretch>();
  // A clock that jumps back writes no time twice: the ledger goes on where it was.
  let clock = 0;
  for (const { after } of happened) {
    clock = Math.max(clock, after.now);
    const device = after.devices.find((one) => one.id === gpuId);
    const state = ({ open: "open", draining: "draining", away: "lost", gone: "lost" } as const)[
      device?.state ?? "gone"
    ];
    const last = states.at(-1);
    if (last === undefined) states.push({ from: 0, state });
    else if (last.state !== state) {
      last.to = clock;
      states.push({ from: clock, state });
    }
    const there = after.holdings.filter((one) => one.gpuId === gpuId);
    for (const [id, stretch] of leased) if (!there.some((one) => one.leaseId === id)) stretch.to ??= clock;
    for (const { leaseId, milli, teamId, userId } of there) {
      if (!leased.has(leaseId)) leased.set(leaseId, { from: clock, milli, teamId, userId, usedMs: 60_000 });
    }
  }
  return { states, leased: [...leased.values()] };
}
