// @vitest-environment happy-dom
import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { button, show } from "#components/testing.tsx";
import { LaunchForm, type LaunchTeam } from "./launch-form.tsx";

vi.mock("next/navigation", () => ({ useRouter: () => ({ push: () => undefined }) }));

const aType = (gpuType: string, limitMilli: number, capacityMilli: number): LaunchTeam["types"][number] => ({
  ...{ gpuType, limitMilli, capacityMilli, atOnceMilli: Math.min(limitMilli, capacityMilli), usedMilli: 0 },
  ...{ guaranteedMilli: 0, guaranteedNowMilli: 0, deviceMemoryBytes: 0, hourMicro: null, averageMicro: null },
});

/** The form of one team with these types, and the type that it begins with. */
function launch(types: LaunchTeam["types"], gpuType?: string) {
  const shown = show(
    <LaunchForm
      images={[
        {
          ...{ id: "img-1", name: "minimal", title: "Minimal", description: "", teamIds: null, launcher: "local" },
          version: {
            ...{ id: "imv-1", version: "0123456789ab", buildState: "ready", buildMessage: null },
            ...{ packageCount: null, atLeast: null, approved: null },
          },
          ...{ older: [], versions: [], startSeconds: null },
        },
      ]}
      teams={[{ id: "team-1", name: "demo", types }]}
      datasets={[]}
      sizes={{
        ...{ sizes: [], custom: [], launchers: [] },
        policy: { customSizes: "nobody", maxCpuMilli: 1000, maxMemoryBytes: 2 ** 30, version: 0 },
      }}
      currency="EUR"
      initial={{
        ...{ name: "mine", image: "minimal", versionId: undefined, teamId: "team-1", amount: "0.5" },
        ...{ gpuType, datasets: [], size: undefined },
      }}
    />,
    () => ({ id: "ws-1" }),
  );
  return { ...shown, choice: screen.getByLabelText<HTMLSelectElement>("GPU type") };
}

it("begins with a type with a limit and a GPU online", async () => {
  const { choice, person, calls } = launch([
    aType("a100", 0, 2000),
    aType("sofft", 1000, 0),
    aType("soft", 1000, 1000),
  ]);
  expect(choice.value).toBe("soft");
  expect([...choice.options].map(({ text }) => text)).toEqual(["a100 (limit 0)", "sofft (no GPU online)", "soft"]);
  await person.click(button("Launch"));
  expect(calls).toMatchObject([{ path: "/workspaces", body: { gpuType: "soft" } }]);
});

it("begins without a type if none is available, and accepts an explicit choice", async () => {
  const types = [aType("a100", 0, 2000), aType("sofft", 1000, 0)];
  const { choice, person, calls } = launch(types);
  expect(choice.selectedOptions[0]?.text).toBe("No type available now");
  await person.selectOptions(choice, "sofft");
  expect(screen.getByText("no GPU of type sofft is online")).toBeTruthy();
  await person.click(button("Launch"));
  expect(calls).toMatchObject([{ path: "/workspaces", body: { gpuType: "sofft" } }]);
});

it("begins with the type of a link", () => {
  expect(launch([aType("soft", 1000, 1000), aType("h200", 1000, 0)], "h200").choice.value).toBe("h200");
});
