// @vitest-environment happy-dom
import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { button, field, show } from "#components/testing.tsx";
import type { SizeChoices } from "./size-choice.ts";
import { SizeForm } from "./size-form.tsx";
import { aWorkspace } from "./testing-workspace.ts";

vi.mock("next/navigation", () => ({ useRouter: () => ({ refresh: () => undefined }) }));

const GIB = 2 ** 30;
const workspace = aWorkspace({});

function sizeNamed(name: string, cpuMilli: number): SizeChoices["sizes"][number] {
  return {
    ...{ id: `sz-${name}`, name, description: "", cpuMilli, memoryBytes: cpuMilli * (GIB / 1000), position: 1 },
    ...{ teamIds: null, isDefault: false, workspaces: null, version: 1, tooLarge: false },
  };
}

const choices: SizeChoices = {
  sizes: [sizeNamed("Small", 1000), sizeNamed("Large", 4000)],
  custom: { cpuMilli: 8000, memoryBytes: 32 * GIB },
  most: undefined,
};

it("begins a custom size with the numbers of the size that was chosen before", async () => {
  const { person } = show(<SizeForm workspace={workspace} choices={choices} />);
  await person.click(screen.getByRole("radio", { name: /^Small/ }));
  await person.click(screen.getByRole("radio", { name: /^Custom/ }));
  expect([field("Cores").value, field("Memory").value]).toEqual(["1", "1"]);
});

it("names a custom size that is no number once it is saved, and sends nothing", async () => {
  const { person, calls } = show(<SizeForm workspace={workspace} choices={choices} />);
  await person.click(screen.getByRole("radio", { name: /^Custom/ }));
  await person.clear(field("Cores"));
  await person.type(field("Cores"), "half");
  expect(screen.queryByText(/^A number like/)).toBeNull();
  await person.click(button("Save"));
  expect(field("Cores", "A number like 2 or 0.5.").value).toBe("half");
  expect(calls).toEqual([]);
});

it("offers no custom size to a person who may not choose one", () => {
  show(<SizeForm workspace={workspace} choices={{ ...choices, custom: null }} />);
  expect(screen.getAllByRole("radio")).toHaveLength(2);
});
