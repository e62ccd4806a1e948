// @vitest-environment happy-dom
import { expect, it, vi } from "vitest";
import { button, field, show } from "#components/testing.tsx";
import OfferForm from "./offer-form.tsx";

vi.mock("next/navigation", () => ({ useRouter: () => ({ refresh: () => undefined }) }));

it("names each number of a size that it cannot read, and sends nothing", async () => {
  const onClose = vi.fn();
  const { person, calls } = show(<OfferForm teams={[]} onClose={onClose} />);
  await person.type(field("Name"), "Tiny");
  await person.type(field("Cores"), "half");
  await person.type(field("Memory"), "much");
  await person.click(button("Save size"));
  expect(field("Cores", "A number like 2 or 0.5.").value).toBe("half");
  expect(field("Memory", "A number like 8 or 1.5.").value).toBe("much");
  expect(calls).toEqual([]);
  expect(onClose).not.toHaveBeenCalled();
});

it("offers a size to everybody in the units of the API, and closes", async () => {
  const onClose = vi.fn();
  const { person, calls } = show(<OfferForm teams={[]} onClose={onClose} />, () => ({}));
  await person.type(field("Name"), "Tiny");
  await person.type(field("Cores"), "0.5");
  await person.type(field("Memory"), "1.5");
  await person.click(button("Save size"));
  expect(calls).toMatchObject([
    {
      method: "POST",
      path: "/workspace-sizes",
      body: { name: "Tiny", cpuMilli: 500, memoryBytes: 1.5 * 2 ** 30, teamIds: null },
    },
  ]);
  expect(onClose).toHaveBeenCalledOnce();
});
