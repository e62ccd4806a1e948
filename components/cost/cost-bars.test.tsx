// @vitest-environment happy-dom
import { fireEvent, screen, within } from "@testing-library/react";
import { expect, it } from "vitest";
import { show } from "#components/testing.tsx";
import { CostBars } from "./cost-bars.tsx";

const bars = [
  { id: "a", name: "vision", value: 900, text: "€9.00", more: "75 % of the total" },
  { id: "b", name: "nlp", value: 300, text: "€3.00", note: "so far" },
];

it("reads out each amount with its share by pointer and arrow keys, the first one first", async () => {
  const { person } = show(<CostBars label="Highest costs by team" bars={bars} />);
  const slider = screen.getByRole("slider", { name: "Values: Highest costs by team" });
  expect(slider.getAttribute("aria-valuetext")).toBe("vision: €9.00, 75 % of the total");
  await person.tab();
  await person.keyboard("{ArrowDown}{ArrowDown}");
  expect(slider.textContent).toBe("nlp: €3.00, so far");
  fireEvent.pointerMove(screen.getByText("vision"));
  expect(slider.textContent).toBe("vision: €9.00, 75 % of the total");
  fireEvent.pointerLeave(slider.parentElement as HTMLElement);
  expect(slider.textContent).toBe("");
});

it("keeps names and amounts as a list", () => {
  show(<CostBars label="Costs by month" bars={bars} />);
  const items = within(screen.getByRole("list", { name: "Costs by month" })).getAllByRole("listitem");
  expect(items.map(({ textContent }) => textContent)).toEqual(["vision€9.00", "nlp€3.00so far"]);
});
