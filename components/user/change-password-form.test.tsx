// @vitest-environment happy-dom
import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { button, Refusal, show } from "#components/testing.tsx";
import ChangePasswordForm from "./change-password-form.tsx";

vi.mock("next/navigation", () => ({ useRouter: () => ({ refresh: () => undefined }) }));

const typed = (label: string) => screen.getByLabelText<HTMLInputElement>(label, { exact: true });

async function fillIn(person: ReturnType<typeof show>["person"], again: string): Promise<void> {
  await person.type(typed("Current password"), "old horse");
  await person.type(typed("New password"), "better horse");
  await person.type(typed("New password again"), again);
  await person.click(button("Change password"));
}

it("refuses two new passwords that differ without sending them", async () => {
  const { person, calls } = show(<ChangePasswordForm email="ada@example.test" onClose={() => undefined} />);
  await fillIn(person, "better house");
  expect(screen.getByText("The two passwords differ. Type the same one twice.")).toBeTruthy();
  expect(calls).toEqual([]);
});

it("names a wrong current password at its field, and keeps what was typed", async () => {
  const onClose = vi.fn();
  const { person } = show(
    <ChangePasswordForm email="ada@example.test" onClose={onClose} />,
    () => new Refusal("invalid", "currentPassword: This is not your current password."),
  );
  await fillIn(person, "better horse");
  const current = typed("Current password");
  const described = document.getElementById(current.getAttribute("aria-describedby") ?? "");
  expect(described?.textContent).toBe("This is not your current password.");
  expect([current.value, typed("New password").value]).toEqual(["old horse", "better horse"]);
  expect(onClose).not.toHaveBeenCalled();
});

it("says how many other sign-in sessions a change ended, and closes", async () => {
  const onClose = vi.fn();
  const { person, calls } = show(<ChangePasswordForm email="ada@example.test" onClose={onClose} />, () => ({
    endedSessions: 1,
  }));
  await fillIn(person, "better horse");
  expect(await screen.findByText("Your password was changed, and 1 other sign-in session ended.")).toBeTruthy();
  expect(calls).toMatchObject([
    { path: "/me/password", body: { currentPassword: "old horse", password: "better horse", revokeTokens: false } },
  ]);
  expect(onClose).toHaveBeenCalledOnce();
});
