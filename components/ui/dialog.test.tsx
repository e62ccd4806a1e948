// @vitest-environment happy-dom
import { screen } from "@testing-library/react";
import { useState } from "react";
import { expect, it, vi } from "vitest";
import { button, field, show } from "#components/testing.tsx";
import { Confirm, Dialog } from "./dialog.tsx";
import { Check, Field, Select } from "./field.tsx";
import { useUnsavedChanges } from "./unsaved.ts";

/** A form with a field of each kind, one of them controlled, and a list that a button changes. */
function Form() {
  const [note, setNote] = useState("");
  const [entries, setEntries] = useState(0);
  useUnsavedChanges(entries > 0);
  return (
    <>
      <Field label="Name" defaultValue="vision" />
      <Field label="Note" value={note} onChange={(event) => setNote(event.currentTarget.value)} />
      <Select label="Type" defaultValue="soft">
        <option>soft</option>
        <option>h200</option>
      </Select>
      <Check label="Weekly" />
      <button type="button" onClick={() => setEntries(entries + 1)}>
        Add entry
      </button>
    </>
  );
}

function showForm() {
  const onOpenChange = vi.fn();
  const shown = show(
    <Dialog open onOpenChange={onOpenChange} title="Edit">
      <Form />
    </Dialog>,
  );
  return { ...shown, onOpenChange };
}
type Person = ReturnType<typeof show>["person"];

const EDITS: [string, (person: Person) => Promise<void>][] = [
  ["a text", async (person) => await person.type(field("Name"), "x")],
  ["a text that the page keeps", async (person) => await person.type(field("Note"), "x")],
  ["a choice", async (person) => await person.selectOptions(screen.getByRole("combobox"), "h200")],
  ["a check mark", async (person) => await person.click(screen.getByRole("checkbox"))],
  ["an entry that was added", async (person) => await person.click(button("Add entry"))],
];

it.each(EDITS)("asks before Escape discards %s, and discards it on confirmation", async (_, edit) => {
  const { person, onOpenChange } = showForm();
  await edit(person);
  await person.keyboard("{Escape}");
  expect(screen.getByRole("alert").textContent).toContain("Discard your changes?");
  expect(onOpenChange).not.toHaveBeenCalled();
  await person.click(button("Keep editing"));
  expect(screen.queryByRole("alert")).toBeNull();
  await person.click(button("Close"));
  await person.click(button("Discard"));
  expect(onOpenChange).toHaveBeenCalledExactlyOnceWith(false);
});

it("closes at once without a change, or after an undone change", async () => {
  const { person, onOpenChange } = showForm();
  await person.type(field("Name"), "x{Backspace}");
  await person.keyboard("{Escape}");
  expect(onOpenChange).toHaveBeenCalledExactlyOnceWith(false);
});

it("keeps editing on a second Escape", async () => {
  const { person, onOpenChange } = showForm();
  await person.type(field("Name"), "x");
  await person.keyboard("{Escape}{Escape}");
  expect(screen.queryByText("Discard your changes?")).toBeNull();
  expect(onOpenChange).not.toHaveBeenCalled();
});

it("confirms a permanent deletion only after its name is typed", async () => {
  const act = vi.fn(() => Promise.resolve(undefined));
  const { person } = show(
    <Confirm
      open
      onOpenChange={() => undefined}
      title="Remove analysis?"
      loses="Everything."
      confirmLabel="Remove"
      pendingLabel="Removing"
      typed="analysis"
      act={act}
    />,
  );
  const confirm = () => screen.getByRole<HTMLButtonElement>("button", { name: "Remove" });
  const name = field('Type "analysis" to confirm');
  await person.type(name, "analysi{Enter}");
  expect(confirm().disabled).toBe(true);
  expect(act).not.toHaveBeenCalled();
  await person.type(name, "s{Enter}");
  expect(act).toHaveBeenCalledTimes(1);
});
