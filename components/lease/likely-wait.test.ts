import { expect, it } from "vitest";
import { formatWait, likelyWait } from "./likely-wait.ts";

it("is told by the team's own last request for the type, and by no other team's", () => {
  const waits = [
    { teamId: "vision", gpuType: "h200", likelySeconds: 60, soonestSeconds: null },
    { teamId: "vision", gpuType: "h200", likelySeconds: 600, soonestSeconds: null },
    { teamId: "vision", gpuType: "h200", likelySeconds: null, soonestSeconds: null },
    { teamId: "nlp", gpuType: "h200", likelySeconds: 7200, soonestSeconds: 1140 },
    { teamId: "nlp", gpuType: "soft", likelySeconds: 5, soonestSeconds: null },
  ];
  expect(likelyWait(waits, { teamId: "vision", gpuType: "h200" })).toMatchObject({ likelySeconds: 600 });
  expect(likelyWait(waits, { teamId: "nlp", gpuType: "h200" })).toEqual({ likelySeconds: 7200, soonestSeconds: 1140 });
  expect(likelyWait(waits, { teamId: "vision", gpuType: "soft" })).toBeUndefined();
});

it("names both limits of a busy lease, and one time otherwise", () => {
  expect(formatWait({ likelySeconds: 1080, soonestSeconds: null })).toBe("about 18 min");
  expect(formatWait({ likelySeconds: 14_340, soonestSeconds: 1140 })).toBe(
    "19 min (idle limit) to 3 h 59 min (time limit)",
  );
});
