// @vitest-environment happy-dom
import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { button, field, Refusal, show } from "#components/testing.tsx";
import { RemoveWorkspace } from "./remove-workspace.tsx";
import { RemovedTable } from "./removed-table.tsx";
import RenameWorkspaceDialog from "./rename-workspace.tsx";
import { aWorkspace } from "./testing-workspace.ts";

vi.mock("next/navigation", () => ({
  useRouter: () => ({ refresh: () => undefined, push: () => undefined }),
  useSearchParams: () => new URLSearchParams(),
  usePathname: () => "/workspaces",
}));

const removed = {
  ...{ id: "ws-1", name: "analysis", owner: { id: "usr-1", name: "Ada" }, team: { id: "team-1", name: "demo" } },
  image: { name: "cuda-python", title: "CUDA Python" },
  filesKeptUntil: new Date(Date.now() + 6 * 86_400_000 + 60_000).toISOString(),
};

it("says how long files are kept, and restores under another name if the old one is in use", async () => {
  const taken = new Refusal("conflict", 'name: Its owner has a workspace named "analysis" already.');
  const { person, calls } = show(<RemovedTable workspaces={[removed]} withOwner />, ({ body }) =>
    (body as { name: string }).name === "analysis" ? taken : aWorkspace({ name: "analysis 2" }),
  );
  expect(screen.getByRole("row", { name: /analysis/ }).textContent).toContain("6 d 0 h");
  await person.click(button("Restore analysis"));
  await person.click(button("Restore workspace"));
  await person.type(field("Name", /Its owner has a workspace named/), " 2");
  await person.click(button("Restore workspace"));
  expect(await screen.findByText("analysis 2 is restored. Start it to work in it.")).toBeDefined();
  expect(calls.map(({ path, body }) => [path, body])).toEqual([
    ["/removed-workspaces/ws-1/restore", { name: "analysis" }],
    ["/removed-workspaces/ws-1/restore", { name: "analysis 2" }],
  ]);
});

it("deletes the files of a removed workspace once its name is typed", async () => {
  const { person, calls } = show(<RemovedTable workspaces={[removed]} withOwner={false} />, () => ({}));
  await person.click(button("Delete analysis now"));
  await person.click(button("Delete files"));
  expect(calls).toEqual([]);
  await person.type(field('Type "analysis" to confirm'), "analysis{Enter}");
  expect(await screen.findByText("The files of analysis are deleted.")).toBeDefined();
  expect(calls).toMatchObject([{ method: "DELETE", path: "/removed-workspaces/ws-1" }]);
});

it.each([
  [7, "Files and installed packages are kept for 7 days"],
  [0, "All of its files and installed packages are deleted. This cannot be undone."],
])("removes a workspace once its name is typed, and says what becomes of its files (%i days)", async (days, words) => {
  const { person, calls } = show(<RemoveWorkspace workspace={aWorkspace({ filesKeptDays: days })} />, () => ({}));
  await person.click(button("Remove workspace"));
  expect(screen.getByRole("dialog").textContent).toContain(words);
  await person.type(field('Type "analysis" to confirm'), "analysis{Enter}");
  expect(calls).toMatchObject([{ method: "DELETE", path: "/workspaces/ws-1" }]);
});

it("renames a workspace", async () => {
  const { person, calls } = show(<RenameWorkspaceDialog workspace={aWorkspace({})} onClose={() => undefined} />, () =>
    aWorkspace({ name: "plots" }),
  );
  await person.clear(field("Name"));
  await person.type(field("Name"), "plots{Enter}");
  expect(await screen.findByText("The workspace is called plots now.")).toBeDefined();
  expect(calls).toEqual([{ method: "PUT", path: "/workspaces/ws-1/name", body: { name: "plots" } }]);
});
