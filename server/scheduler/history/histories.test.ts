import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fitsNow } from "../fits-now.ts";
import { evaluate, judged } from "../queue.ts";
import { leasesOf } from "../share.ts";
import type { Holding } from "../types.ts";
import { histories, POLICY, play } from "./history.ts";
import { broken } from "./properties.ts";

/** `SLUICE_HISTORIES=100000 npx vitest run server/scheduler/history` plays a hundred thousand. */
const numRuns = Number(process.env.SLUICE_HISTORIES ?? 2_000);
/**
 * The same histories in every run, so that what fails is what was changed; `npm run soak` plays others, whose seed it
 * chooses and tells (`SLUICE_SEED`); what it finds is mended and stands in `found.test.ts`.
 */
const seed = Number(process.env.SLUICE_SEED ?? 20261122);
const TIMEOUT = 60_000 + numRuns * 20;

describe(`in ${numRuns} random histories of seed ${seed}`, () => {
  test(
    "every rule holds after every round",
    () => {
      fc.assert(
        fc.property(histories, (history) => {
          expect(broken(play(history, evaluate).happened)).toBeUndefined();
        }),
        { numRuns, seed },
      );
    },
    TIMEOUT,
  );

  test(
    "left alone, the pool comes to rest: room that is being made is made in time, and nobody is taken back in circles",
    () => {
      fc.assert(
        fc.property(histories, (history) => {
          const machine = play(history, evaluate);
          machine.freeze();
          machine.excused.clear();
          machine.change({
            holdings: machine.world.holdings.map((one) => ({ ...one, expiresAt: Number.MAX_SAFE_INTEGER })),
          });
          machine.change({ queue: machine.world.queue.map((one) => ({ ...one, lengthMs: 1e12 })) });
          const inTime = Math.max(POLICY.noticeMs, POLICY.minRunMs);
          const taken: Holding[] = [];
          const again = (lease: Holding) => {
            taken.push(lease);
            const milli =
              leasesOf(machine.happened.at(-1)?.after.holdings ?? []).find((one) => one.first.leaseId === lease.leaseId)
                ?.milli ?? lease.milli;
            const { teamId, userId, who } = lease;
            const request = { requestId: `again${taken.length}`, teamId, userId, who, milli, memoryBytes: 0 };
            const createdAt = machine.world.now;
            machine.change({
              queue: [
                ...machine.world.queue,
                { ...request, guaranteedOnly: false, createdAt, lengthMs: 1e12, maxDevices: 8 },
              ],
            });
          };
          for (let turn = 0; turn < 12; turn++) {
            const from = machine.happened.length;
            machine.advance(machine.world.now + inTime, again);
            const told = machine.world.holdings.some((one) => one.notice);
            if (!told && machine.happened.slice(from).every(({ round }) => round.notices.length === 0)) break;
            expect(turn, "still taking back").toBeLessThan(11);
          }
          expect(machine.world.holdings.filter((one) => one.notice)).toEqual([]);
          expect(broken(machine.happened)).toBeUndefined();
        }),
        { numRuns: Math.ceil(numRuns / 4), seed },
      );
    },
    TIMEOUT,
  );

  test(
    "what would fit now follows from those alone whose place decides about others",
    () => {
      fc.assert(
        fc.property(histories, (history) => {
          const machine = play(history, evaluate);
          for (const { before: world } of machine.happened) {
            const known = judged(world).world;
            for (const request of world.queue) expect(fitsNow(request, known)).toBe(fitsNow(request, world));
          }
        }),
        { numRuns: Math.ceil(numRuns / 16), seed },
      );
    },
    TIMEOUT,
  );

  test(
    "a round is complete: the next one finds nothing to do",
    () => {
      fc.assert(
        fc.property(histories, (history) => {
          const machine = play(history, evaluate);
          const granted = new Set(machine.happened.at(-1)?.before.queue.map(({ requestId }) => requestId));
          const { round } = machine.round();
          expect(round.verdicts.filter((verdict) => verdict.state !== "queued")).toEqual([]);
          // What is granted now, and another's by a reservation that begins soon, has to be a lease to be told.
          const notices = round.notices.filter(({ leaseId }) => !granted.has(leaseId.replace(/#.*/, "")));
          expect({ notices, withdrawn: round.withdrawn, kept: round.kept }).toEqual({
            ...{ notices: [], withdrawn: [], kept: [] },
          });
        }),
        { numRuns: Math.ceil(numRuns / 4), seed },
      );
    },
    TIMEOUT,
  );
});
