import { describe, expect, it } from "vitest";
import { hadTimeToSave, idleEndOf, knowsServerLeaves, lastWorkOf, leavesWithServer } from "./holder.ts";

const at = (seconds: number) => new Date(seconds * 1000);
const untold: { noticeFor: string | null; releaseAt: Date | null } = { noticeFor: null, releaseAt: null };
const part = (usage: number | null, state: "active" | "granted" = "active", told = untold) => ({
  ...{ state, grantedAt: at(10), claimedAt: at(20) },
  usageAt: usage === null ? null : at(usage),
  ...told,
});

describe("a lease of several GPUs", () => {
  it("worked when one of them last did, or was taken up", () => {
    expect(lastWorkOf([part(50), part(90)])).toEqual(at(90));
    expect(lastWorkOf([part(null), part(null)])).toEqual(at(20));
  });

  it("ends idle when all of them are, and is not idle before it is used", () => {
    expect(idleEndOf([part(90), part(50)], 60_000)).toEqual(at(150));
    expect(idleEndOf([part(null, "granted")], 60_000)).toBeNull();
  });

  it("ends idle also while one of its devices is out of reach", () => {
    const unheard = { ...part(90), state: "unreachable" as const };
    expect(idleEndOf([unheard, part(50)], 60_000)).toEqual(at(150));
    expect(idleEndOf([unheard], 60_000)).toBeNull();
  });

  it("does not end idle before the time to save is over where a GPU server goes out of service", () => {
    const leaves = { ...untold, releaseAt: at(600) };
    expect([leavesWithServer(leaves), leavesWithServer({ ...leaves, noticeFor: "req-1" })]).toEqual([true, false]);
    expect(idleEndOf([part(50), part(50, "active", leaves)], 60_000)).toBeNull();
    expect(idleEndOf([part(50, "active", { ...leaves, noticeFor: "req-1" })], 60_000)).toEqual(at(110));
  });

  it("is known to leave with its server by a notice since that was closed, and is over when the notice is", () => {
    const told = (noticeAt: Date | null) => ({ ...untold, noticeAt, releaseAt: at(600) });
    const knows = (closedAt: Date | null) =>
      [null, at(99), at(100)].map((time) => knowsServerLeaves(told(time), closedAt));
    expect(knows(at(100))).toEqual([false, false, true]);
    expect(knows(null)).toEqual([false, false, false]);
    expect(knowsServerLeaves({ ...told(at(100)), noticeFor: "req-1" }, at(100))).toBe(false);
    expect([at(599), at(600)].map((now) => hadTimeToSave(told(at(100)), at(100), now))).toEqual([false, true]);
    expect(hadTimeToSave(told(at(99)), at(100), at(700))).toBe(false);
  });
});
