// @vitest-environment happy-dom
import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { show } from "#components/testing.tsx";
import { EgressCard } from "./egress-card.tsx";

it("shows the entries of a list, and says when a list is empty", () => {
  const { showAgain } = show(<EgressCard policy={{ mode: "list", allow: ["*.example.org"] }} onCluster={false} />);
  expect(screen.getByRole("listitem").textContent).toBe("*.example.org");
  expect(screen.queryByText(/The list is empty/)).toBeNull();
  showAgain(<EgressCard policy={{ mode: "list", allow: [] }} onCluster={false} />);
  expect(screen.getByText(/The list is empty, so all destinations are closed\./)).toBeTruthy();
});

it("hides the list where no entry applies", () => {
  show(<EgressCard policy={{ mode: "none", allow: ["pypi.org"] }} onCluster={false} />);
  expect(screen.getByText("No connections")).toBeTruthy();
  expect(screen.queryByText("pypi.org")).toBeNull();
});
