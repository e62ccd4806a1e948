// @vitest-environment happy-dom
import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { button, field, Refusal, show } from "#components/testing.tsx";
import InvitationForm from "./invitation-form.tsx";

vi.mock("next/navigation", () => ({ useRouter: () => ({ refresh: () => undefined }) }));

const teams = [{ id: "team-1", name: "vision" }];

async function askFor(refusal: Refusal) {
  const onClose = vi.fn();
  const shown = show(<InvitationForm teams={teams} onClose={onClose} />, ({ path }) =>
    path === "/invitations" ? refusal : {},
  );
  await shown.person.type(field("E-mail"), "eva@example.org");
  await shown.person.click(button("Make the link"));
  return { ...shown, onClose };
}

it("offers to add a person who has an account", async () => {
  const message = "email: eva@example.org has an account already. Add them to the team instead.";
  const { person, calls, onClose } = await askFor(new Refusal("conflict", message, { mayAdd: true }));
  await person.click(button("Add eva@example.org to vision"));
  expect(await screen.findByText("eva@example.org is in vision now.")).toBeDefined();
  expect(calls.at(-1)).toEqual({
    ...{ method: "POST", path: "/teams/team-1/members" },
    body: { email: "eva@example.org", role: "member" },
  });
  expect(onClose).toHaveBeenCalledOnce();
});

it("offers to reactivate a deactivated account", async () => {
  const message = "email: eva@example.org is deactivated. Reactivate the account instead.";
  const { person, calls } = await askFor(new Refusal("conflict", message, { deactivated: "usr-7" }));
  await person.click(button("Reactivate eva@example.org"));
  expect(await screen.findByText("eva@example.org may sign in again.")).toBeDefined();
  expect(calls.at(-1)).toMatchObject({ method: "POST", path: "/users/usr-7/reactivate" });
});

it("offers nothing without the right to do it, and shows the reason once", async () => {
  const message = "email: eva@example.org is deactivated. Ask an admin to reactivate the account.";
  await askFor(new Refusal("conflict", message));
  const reasons = screen.getAllByText("eva@example.org is deactivated. Ask an admin to reactivate the account.");
  expect(reasons).toHaveLength(1);
  expect(screen.queryByRole("button", { name: /Reactivate|Add/ })).toBeNull();
});
