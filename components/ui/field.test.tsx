// @vitest-environment happy-dom
import { screen } from "@testing-library/react";
import { expect, it } from "vitest";
import { field, show } from "#components/testing.tsx";
import { Field } from "./field.tsx";

const refused = <Field label="Amount" defaultValue="9" error="At most 1.0." />;

it("shows the server's error until the field is edited, and again after another refusal", async () => {
  const { person, showAgain } = show(refused);
  expect(field("Amount", "At most 1.0.").getAttribute("aria-invalid")).toBe("true");
  await person.type(field("Amount"), "{Backspace}1");
  expect(screen.queryByText("At most 1.0.")).toBeNull();
  expect(field("Amount").getAttribute("aria-invalid")).toBeNull();
  // Sent again: without an error while it is on its way, then refused with the same sentence.
  showAgain(<Field label="Amount" defaultValue="9" />);
  showAgain(refused);
  expect(field("Amount", "At most 1.0.").value).toBe("1");
});
