import { expect, it } from "vitest";
import { likelyWait } from "./likely-wait.ts";

it("is told by the team's own last request for the type, and by no other team's", () => {
  const waits = [
    { teamId: "vision", gpuType: "h200", likelySeconds: 60 },
    { teamId: "vision", gpuType: "h200", likelySeconds: 600 },
    { teamId: "vision", gpuType: "h200", likelySeconds: null },
    { teamId: "nlp", gpuType: "h200", likelySeconds: 7200 },
    { teamId: "nlp", gpuType: "soft", likelySeconds: 5 },
  ];
  expect(likelyWait(waits, { teamId: "vision", gpuType: "h200" })).toBe(600);
  expect(likelyWait(waits, { teamId: "nlp", gpuType: "h200" })).toBe(7200);
  expect(likelyWait(waits, { teamId: "vision", gpuType: "soft" })).toBeUndefined();
});
