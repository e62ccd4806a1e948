import { expect, it } from "vitest";
import { readTimeZone, writeTimeZone } from "./time-zone.ts";

it("the person's time zone is the browser's, or the one that was chosen, and UTC where nothing sensible is kept", () => {
  expect(readTimeZone(undefined)).toEqual({ automatic: true, zone: "UTC" });
  expect(readTimeZone("auto:Europe/Berlin")).toEqual({ automatic: true, zone: "Europe/Berlin" });
  expect(readTimeZone("Asia/Kolkata")).toEqual({ automatic: false, zone: "Asia/Kolkata" });
  expect(readTimeZone("Nowhere/City")).toEqual({ automatic: true, zone: "UTC" });
  for (const kept of ["auto:America/St_Johns", "UTC"]) expect(writeTimeZone(readTimeZone(kept))).toBe(kept);
});
