// @vitest-environment happy-dom
import { screen, within } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { button, Refusal, show } from "#components/testing.tsx";
import type { QuotaEffects, QuotaView } from "#server/contracts/team.ts";
import QuotaForm from "./quota-form.tsx";

vi.mock("next/navigation", () => ({ useRouter: () => ({ refresh: () => undefined }) }));

const quota: QuotaView = {
  ...{ gpuType: "soft", guaranteedMilli: 500, guaranteedNowMilli: 500, limitMilli: 1000, usedMilli: 0, version: 7 },
  increases: [],
  ...{ weight: 1, priority: 0, personMilli: null, largestMilli: null, budgetMilliHours: null },
};
const effects: QuotaEffects = {
  ...{ refusal: null, capacityMilli: 1000, unallocatedMilli: 750, usedMilli: 0, overLimitMilli: 0 },
  ...{ borrowedMilli: { before: 0, after: 0 }, overCeiling: [], granted: [], takenBack: [], budget: null },
};
const tooMuch = "The guarantees of all teams do not fit the devices.";

/** Refuses a guarantee above the one GPU that there is. */
function preview(body: unknown): QuotaEffects {
  const { guaranteedMilli } = body as { guaranteedMilli: number };
  return guaranteedMilli > 1000 ? { ...effects, refusal: tooMuch } : effects;
}

it("says what saving would do, or why it is refused, and saves nothing when it is canceled", async () => {
  const onClose = vi.fn();
  const { person, calls } = show(
    <QuotaForm teamId="team-1" teamName="demo" quota={quota} onClose={onClose} />,
    ({ body }) => preview(body),
  );
  const said = within(screen.getByRole("region", { name: "What saving would do" }));
  const guaranteed = screen.getByLabelText("Guaranteed");
  await person.clear(guaranteed);
  await person.type(guaranteed, "5");
  expect(await said.findByText("This cannot be saved")).toBeTruthy();
  expect(said.getByText(tooMuch)).toBeTruthy();
  await person.clear(guaranteed);
  await person.type(guaranteed, "0.25");
  expect(await said.findByText("leave 0.75 soft of 1.0 unallocated")).toBeTruthy();
  await person.click(button("Cancel"));
  expect(onClose).toHaveBeenCalledOnce();
  expect(new Set(calls.map(({ path }) => path))).toEqual(new Set(["/teams/team-1/quotas/soft/preview"]));
});

it("saves a quota in the units of the API with the version that was edited", async () => {
  const { person, calls } = show(
    <QuotaForm teamId="team-1" teamName="demo" quota={quota} onClose={() => undefined} />,
    ({ body }) => preview(body),
  );
  await person.clear(screen.getByLabelText("Limit"));
  await person.type(screen.getByLabelText("Limit"), "0.75");
  await person.click(button("Save quota"));
  expect(calls.filter(({ method }) => method === "PUT")).toMatchObject([
    { path: "/teams/team-1/quotas/soft", body: { guaranteedMilli: 500, limitMilli: 750, version: 7 } },
  ]);
});

it("offers the pool's types, and warns of a type outside the pool, also in the preview", async () => {
  const { person, calls } = show(
    <QuotaForm teamId="team-1" teamName="demo" types={["h200", "soft"]} onClose={() => undefined} />,
    ({ path }) => (path.includes("sofft") ? { ...effects, capacityMilli: 0 } : effects),
  );
  const type = screen.getByLabelText<HTMLSelectElement>("GPU type");
  expect([...type.options].map(({ text }) => text)).toEqual(["h200", "soft", "Another type, not in the pool yet"]);
  await person.selectOptions(type, "soft");
  await person.click(button("Save quota"));
  expect(calls.at(-1)).toMatchObject({ method: "PUT", path: "/teams/team-1/quotas/soft" });
  await person.selectOptions(type, "Another type, not in the pool yet");
  expect(screen.getByText(/The pool has no GPU of this type/)).toBeTruthy();
  await person.type(screen.getByLabelText("Name of the GPU type"), "sofft");
  expect(await screen.findByText(/grant nothing until a server with a GPU of type sofft joins/)).toBeTruthy();
});

it("removes the quota after a confirmation, and shows the reason of a refusal", async () => {
  const onClose = vi.fn();
  let refusal: Refusal | undefined = new Refusal("conflict", "Team demo still holds 1 soft lease.");
  const { person, calls } = show(
    <QuotaForm teamId="team-1" teamName="demo" quota={quota} onClose={onClose} />,
    ({ body }) => refusal ?? preview(body),
  );
  await person.click(button("Remove quota"));
  expect(calls).toEqual([]);
  await person.click(button("Remove quota"));
  expect(await screen.findByText("Team demo still holds 1 soft lease.")).toBeTruthy();
  expect(onClose).not.toHaveBeenCalled();
  refusal = undefined;
  await person.click(button("Remove quota"));
  expect(onClose).toHaveBeenCalled();
  expect(calls.at(-1)).toMatchObject({ method: "DELETE", path: "/teams/team-1/quotas/soft", body: { version: 7 } });
});
