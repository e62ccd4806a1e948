import { expect, it } from "vitest";
import { effectSentences } from "#components/team/effects-of-quota.tsx";
import type { QuotaEffects } from "#server/contracts/team.ts";

const none: QuotaEffects = {
  ...{ refusal: null, capacityMilli: 2000, unallocatedMilli: 500, usedMilli: 0, overLimitMilli: 0 },
  ...{ borrowedMilli: { before: 0, after: 0 }, overCeiling: [], granted: [], takenBack: [], budget: null },
};

it("says what is left, and nothing of what does not change", () => {
  expect(effectSentences(none, "soft", "UTC")).toEqual(["leave 0.5 soft of 2.0 unallocated"]);
});

it("says by how much the guarantees exceed the pool", () => {
  const over = { ...none, capacityMilli: 1000, unallocatedMilli: -500 };
  expect(effectSentences(over, "soft", "UTC")).toEqual(["guarantee 0.5 soft more than the pool has (1.0)"]);
});

it("names who gets, who loses and who waits", () => {
  const sentences = effectSentences(
    {
      ...none,
      ...{ borrowedMilli: { before: 0, after: 500 }, overLimitMilli: 250, overCeiling: [{ who: "Max", milli: 1000 }] },
      granted: [{ who: "Kim", teamName: "vision", milli: 500 }],
      takenBack: [{ who: "Oto", teamName: "nlp", milli: 1000 }],
      budget: { usedMilliHours: 4000, milliHours: 4000, spentAt: null },
    },
    "soft",
    "UTC",
  );
  expect(sentences.slice(1)).toEqual([
    "grant 0.5 soft to Kim (vision) at once",
    "take 1.0 soft back from Oto (nlp), with notice",
    "make 0.5 soft of what the team holds borrowed: it can be taken back",
    "grant nothing new until 0.25 soft above the limit has ended; it runs on",
    "grant Max nothing new: holds 1.0 soft, which runs on",
    "stop new GPUs until the month ends: 4.0 of 4.0 GPU-h are used",
  ]);
});
