// @vitest-environment happy-dom
import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { button, show } from "#components/testing.tsx";
import { NewPasswordForm } from "./new-password-form.tsx";

vi.mock("#components/session/sign-in.ts", () => ({
  signInLocally: async () => undefined,
  enterPortal: () => undefined,
}));

it("refuses two passwords that differ, keeps them, and does not use up the link", async () => {
  const { person, calls } = show(<NewPasswordForm code="one-time" email="ada@example.test" />);
  await person.type(screen.getByLabelText("New password"), "better horse");
  await person.type(screen.getByLabelText("New password again"), "better house");
  await person.click(button("Set the password"));
  expect(screen.getByText("The two passwords differ. Type the same one twice.")).toBeTruthy();
  expect(screen.getByLabelText<HTMLInputElement>("New password").value).toBe("better horse");
  expect(calls).toEqual([]);
});
