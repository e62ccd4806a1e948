// @vitest-environment happy-dom
import { screen, within } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { show } from "#components/testing.tsx";
import { RefusedConnections } from "./refused-connections.tsx";

vi.mock("next/navigation", () => ({ useSearchParams: () => new URLSearchParams() }));

it("shows host, port, count, time and rule of each refused connection, the newest first", () => {
  const reason = "pypi.org is not on the list of this team's outgoing network policy.";
  show(
    <RefusedConnections
      refusals={[
        { host: "pypi.org", port: 80, reason, count: 1, lastAt: "2026-11-28T11:00:00.000Z" },
        { host: "pypi.org", port: 443, reason, count: 1200, lastAt: "2026-11-28T12:00:00.000Z" },
      ]}
    />,
  );
  const [, newest, older] = screen.getAllByRole("row");
  expect(newest?.textContent).toContain("4431,200");
  expect(older?.textContent).toContain("801");
  expect(within(newest as HTMLElement).getAllByText(reason)).toHaveLength(2);
});
