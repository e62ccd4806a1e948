// @vitest-environment happy-dom
import { fireEvent, screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { show } from "#components/testing.tsx";
import { Timeline } from "./timeline.tsx";

const row = (id: string, titles: string[]) => ({
  ...{ id, name: id, text: `${id} waits` },
  spans: titles.map((title, from) => ({ from, to: from + 1, look: "sure" as const, title })),
});

it("reads out each span by pointer and arrow keys, row by row", async () => {
  const rows = [row("one", ["waiting since 12:48", "likely grant 13:18"]), row("two", ["waiting since 12:50"])];
  const { person } = show(<Timeline label="Waiting" rows={rows} from={0} to={3} now={1} zone="UTC" />);
  const slider = screen.getByRole("slider", { name: "Values: Waiting" });
  await person.tab();
  await person.keyboard("{Home}{ArrowDown}");
  expect(slider.textContent).toBe("one: likely grant 13:18");
  await person.keyboard("{End}");
  expect(slider.getAttribute("aria-valuetext")).toBe("two: waiting since 12:50");
  fireEvent.pointerMove(document.querySelector('[data-at="0"]') as Element);
  expect(slider.textContent).toBe("one: waiting since 12:48");
});
