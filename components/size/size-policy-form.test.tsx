// @vitest-environment happy-dom
import { expect, it, vi } from "vitest";
import { button, field, show } from "#components/testing.tsx";
import { SizePolicyForm } from "./size-policy-form.tsx";

vi.mock("next/navigation", () => ({ useRouter: () => ({ refresh: () => undefined }) }));

const policy = { customSizes: "nobody" as const, maxCpuMilli: 4000, maxMemoryBytes: 16 * 2 ** 30, version: 3 };

it("names a limit that is no number, and sends nothing", async () => {
  const { person, calls } = show(<SizePolicyForm policy={policy} />);
  await person.clear(field("Cores at most"));
  await person.type(field("Cores at most"), "many");
  await person.click(button("Save"));
  expect(field("Cores at most", "A number like 8.").value).toBe("many");
  expect(calls).toEqual([]);
});

it("sends limits in the units of the API with the version that was edited", async () => {
  const { person, calls } = show(<SizePolicyForm policy={policy} />, () => ({ policy: { ...policy, version: 4 } }));
  await person.clear(field("Cores at most"));
  await person.type(field("Cores at most"), "6{Enter}");
  expect(calls).toMatchObject([
    { method: "PUT", body: { customSizes: "nobody", maxCpuMilli: 6000, maxMemoryBytes: 16 * 2 ** 30, version: 3 } },
  ]);
});
