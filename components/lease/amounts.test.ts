import { expect, it } from "vitest";
import { amountsOf } from "./amounts.ts";

it("adds up what is of one GPU type, and says each type for itself", () => {
  const [whole, half, other] = [
    { milli: 1000, gpuType: "h200" },
    { milli: 500, gpuType: "h200" },
    { milli: 500, gpuType: "a100" },
  ] as const;
  expect(amountsOf([half])).toBe("0.5 h200");
  expect(amountsOf([whole, half])).toBe("1.5 h200");
  expect(amountsOf([whole, other])).toBe("1.0 h200 and 0.5 a100");
  expect(amountsOf([other, whole, half, { milli: 250, gpuType: "soft" }])).toBe("0.5 a100, 1.5 h200, and 0.25 soft");
});
