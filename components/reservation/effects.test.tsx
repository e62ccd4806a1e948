// @vitest-environment happy-dom
import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { show } from "#components/testing.tsx";
import type { ReservationEffects } from "#server/contracts/sharing.ts";
import { Effects } from "./effects.tsx";

const effects: ReservationEffects = { refusal: null, at: null, packing: [], spareMilli: 0, count: 1, displaced: [] };

it("says that a reservation for one person is theirs alone and displaces nobody", () => {
  show(<Effects effects={effects} forPerson zone="UTC" />);
  expect(screen.getByText("Reserved for this person alone, even when idle.")).toBeTruthy();
  expect(screen.getByText("Nobody who holds a GPU now loses it for this.")).toBeTruthy();
});

it("names each lease that a reservation for the team takes back", () => {
  const displaced = [{ who: "Ada", teamName: "vision", milli: 500 }];
  show(<Effects effects={{ ...effects, displaced }} forPerson={false} zone="UTC" />);
  expect(screen.getByRole("heading").textContent).toMatch(/^When the team takes all of this/);
  expect(screen.getByRole("listitem").textContent).toBe("0.5 of Ada (vision), if it still runs then");
});

it("says how many reservations a weekly one makes, and by which clocks", () => {
  show(<Effects effects={{ ...effects, count: 5 }} forPerson={false} zone="Europe/Berlin" />);
  const said = "5 reservations, one a week, at the same times by the clocks of Europe/Berlin.";
  expect(screen.getByText(said)).toBeTruthy();
  expect(screen.queryByText(/Nobody else of the team/)).toBeNull();
});
