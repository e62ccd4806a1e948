// @vitest-environment happy-dom
import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { button, field, Refusal, show } from "#components/testing.tsx";
import type { EgressPolicyView } from "#server/contracts/egress.ts";
import EgressForm from "./egress-form.tsx";
import { readEntries } from "./egress-words.ts";

vi.mock("next/navigation", () => ({ useRouter: () => ({ refresh: () => undefined }) }));

const open: EgressPolicyView = { mode: "all", allow: [], version: 1 };
const listed: EgressPolicyView = { mode: "list", allow: ["pypi.org", "10.1.0.0/16"], version: 7 };
const mode = (name: RegExp) => screen.getByRole<HTMLInputElement>("radio", { name });
const list = (description?: RegExp) => field("Allowed destinations", description);

const formOf = (policy: EgressPolicyView, onClose = () => {}, onCluster = false) => (
  <EgressForm teamId="team-1" teamName="demo" policy={policy} onCluster={onCluster} onClose={onClose} />
);

it("shows the policy as it is, with one entry per line", () => {
  show(formOf(listed));
  expect(mode(/^Listed destinations/).checked).toBe(true);
  expect(list().value).toBe("pypi.org\n10.1.0.0/16");
});

it("saves the mode and the list on the version that was shown", async () => {
  const onClose = vi.fn();
  const { person, calls } = show(formOf(open, onClose), () => listed);
  await person.click(mode(/^Listed destinations/));
  await person.type(list(), " PyPI.org \n\npypi.org\n10.1.0.0/16\n");
  await person.click(button("Save outgoing network"));
  expect(calls).toEqual([
    {
      ...{ method: "PUT", path: "/teams/team-1/egress-policy" },
      body: { mode: "list", allow: ["pypi.org", "10.1.0.0/16"], version: 1 },
    },
  ]);
  expect(onClose).toHaveBeenCalledOnce();
});

it("keeps the list when the mode needs none", async () => {
  const { person, calls } = show(formOf(listed), () => listed);
  await person.click(mode(/^No connections/));
  expect(list(/It is kept for the other modes/)).toBeTruthy();
  await person.click(button("Save outgoing network"));
  expect(calls[0]?.body).toEqual({ mode: "none", allow: listed.allow, version: 7 });
});

it("names each line that is no entry, and sends nothing", async () => {
  const { person, calls } = show(formOf(listed));
  await person.type(list(), "\nexa mple.org\nok.example.org\nhttps://pypi.org/simple");
  await person.click(button("Save outgoing network"));
  expect(list(/Line 3, "exa mple.org": write a host name, an address or a range\./)).toBeTruthy();
  expect(list(/Line 5, "https:\/\/pypi.org\/simple": write the host alone, pypi.org\./)).toBeTruthy();
  expect(list().getAttribute("aria-invalid")).toBe("true");
  expect(calls).toEqual([]);
});

it("keeps what was typed when the server refuses the policy", async () => {
  const onClose = vi.fn();
  const { person } = show(formOf(open, onClose), () => new Refusal("forbidden", "Ask an admin."));
  await person.type(list(), "10.1.0.0/16");
  await person.click(button("Save outgoing network"));
  expect(screen.getByText("Ask an admin.")).toBeTruthy();
  expect(list().value).toBe("10.1.0.0/16");
  expect(onClose).not.toHaveBeenCalled();
});

it("tells of closed destinations, and of names on a cluster", () => {
  const { showAgain } = show(formOf(open));
  expect(screen.getByText(/link-local addresses are closed in every mode/)).toBeTruthy();
  expect(screen.queryByText(/Kubernetes/)).toBeNull();
  showAgain(formOf(open, () => {}, true));
  expect(screen.getByText(/Names in the list stay closed there/)).toBeTruthy();
});

it("refuses more entries than a team may have", () => {
  const many = Array.from({ length: 101 }, (_, index) => `host-${index}.example.org`);
  expect(readEntries(many.join("\n")).errors).toEqual(["The list has 101 entries. Remove some: 100 are allowed."]);
  expect(readEntries(many.slice(1).join("\n")).errors).toEqual([]);
  expect(readEntries("example.org:8080").errors).toEqual([
    'Line 1, "example.org:8080": write the host alone, example.org.',
  ]);
});
