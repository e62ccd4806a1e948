import { describe, expect, it } from "vitest";
import { idleEndOf, lastWorkOf } from "./holder.ts";

const at = (seconds: number) => new Date(seconds * 1000);
const part = (usage: number | null, state: "active" | "granted" = "active") => ({
  ...{ state, grantedAt: at(10), claimedAt: at(20) },
  usageAt: usage === null ? null : at(usage),
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
});
