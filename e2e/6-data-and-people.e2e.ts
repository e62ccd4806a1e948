/** Files that a team has registered reach a notebook; a colleague who was invited to look sees its files and runs nothing. */
import { chmod, mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, type Page } from "@playwright/test";
import { expectAccessible } from "./fixtures/accessible.ts";
import { joinByApi, signInByApi, teamByName } from "./fixtures/api.ts";
import { test } from "./fixtures/lane.ts";
import { Notebook } from "./fixtures/notebook.ts";
import { openLab, pageOf, signIn } from "./fixtures/portal.ts";

test.describe.configure({ mode: "serial" });

const run = Date.now().toString(36);
const dataset = `digits-${run}`;
const workspace = `data ${run}`;
const viewer = `viewer-${run}@example.test`;

let page: Page;

test.beforeAll(async ({ browser, installation }) => {
  page = await pageOf(browser, installation);
});

test.afterAll(async () => {
  await page.context().close();
});

test("an admin registers a folder, and the server measures it", async ({ installation }) => {
  const folder = path.join(installation.stateDir, "datasets", dataset);
  await mkdir(folder, { recursive: true });
  await writeFile(path.join(folder, "pi.txt"), "3.14159");
  for (const each of [folder, path.join(folder, "pi.txt")]) await chmod(each, 0o755);
  await page.goto("/datasets");
  await page.getByRole("button", { name: "Register" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill(dataset);
  await dialog.getByLabel("For").selectOption("everybody");
  await dialog.getByLabel("Folder").fill("/etc");
  await expectAccessible(page, "the form of a dataset");
  await dialog.getByRole("button", { name: "Register" }).click();
  await expect(dialog.getByText("/etc cannot be mounted", { exact: false })).toBeVisible();
  await dialog.getByLabel("Folder").fill(folder);
  await dialog.getByRole("button", { name: "Register" }).click();
  await expect(dialog).toHaveCount(0);
  await expect(page.getByRole("row").filter({ hasText: dataset })).toContainText("7 B");
  await expectAccessible(page, "/datasets with a dataset");
});

test("a launch link fills the form in, and a notebook reads the dataset and cannot change it", async () => {
  await page.goto(`/workspaces/new?${new URLSearchParams({ name: workspace, datasets: dataset })}`);
  await expect(page.getByText("nothing is launched before you press Launch", { exact: false })).toBeVisible();
  await expect(page.getByRole("checkbox", { name: dataset })).toBeChecked();
  await page.getByRole("button", { name: "Launch", exact: true }).click();
  await expect(page).toHaveURL(/\/workspaces\/ws-/);
  const mounted = page.getByRole("region", { name: "Datasets" });
  await expect(mounted).toContainText(`~/datasets/${dataset}`);
  await expect(mounted).toContainText("was read into memory", { timeout: 90_000 });
  const notebook = await Notebook.create(await openLab(page, workspace));
  expect(await notebook.run(`print(open("datasets/${dataset}/pi.txt").read())`)).toContain("3.14159");
  expect(await notebook.run(`open("datasets/${dataset}/pi.txt", "w")`)).toContain("Read-only file system");
  await notebook.run(`open("found.txt", "w").write("pi is in the data")`);
  const cell = { cell_type: "code", id: "pi", source: "pi = 3", metadata: {}, outputs: [], execution_count: null };
  const seen = JSON.stringify({ nbformat: 4, nbformat_minor: 5, metadata: {}, cells: [cell] });
  await notebook.run(`open("seen.ipynb", "w").write('''${seen}''')`);
  await page.bringToFront();
});

test("a launch link says what it names and nobody here can choose", async () => {
  const asked = {
    image: "no-such-environment",
    team: "no-such-team",
    type: "h999",
    datasets: `${dataset},no-such-data`,
  };
  const form = await page.context().newPage();
  await form.goto(`/workspaces/new?${new URLSearchParams(asked)}`);
  await expect(form.getByText("Not as the link says", { exact: false })).toContainText(
    "environment no-such-environment, team no-such-team, GPU type h999, dataset no-such-data.",
  );
  await expect(form.getByRole("checkbox", { name: dataset })).toBeChecked();
  await form.close();
});

test("a viewer follows the owner's link, reads the files, and can run nothing", async ({ browser, installation }) => {
  const at = page.url();
  const api = await signInByApi(installation.portalUrl);
  await joinByApi(api, await teamByName(api, "demo"), viewer, `Viewer ${run}`);
  await api.dispose();
  await page.goto(`${at}/people`);
  await page.getByRole("button", { name: "Invite" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name or e-mail").fill(viewer);
  await dialog.getByRole("button", { name: "Invite" }).click();
  await expect(page.getByRole("cell", { name: viewer })).toBeVisible();
  const link = await page.getByLabel("Link to this workspace").inputValue();

  const guest = await (await browser.newContext()).newPage();
  await guest.goto(link);
  await expect(guest).toHaveURL(/sign-in/);
  await signIn(guest, viewer);
  await guest.goto(link);
  await expect(guest.getByText(`you are a viewer`, { exact: false })).toBeVisible();
  await expect(guest.getByRole("button", { name: "Stop" })).toHaveCount(0);
  const lab = await openLab(guest, workspace);
  await expect(lab.getByText("Read-only. You are a viewer of", { exact: false })).toBeVisible();
  await lab.getByRole("listitem").filter({ hasText: "found.txt" }).dblclick();
  const text = lab.locator(".jp-FileEditor .cm-content");
  await expect(text).toHaveText("pi is in the data", { timeout: 60_000 });
  await text.click();
  await lab.keyboard.type("changed");
  await expect(text).toHaveText("pi is in the data");
  await lab.getByRole("listitem").filter({ hasText: "seen.ipynb" }).dblclick();
  const lines = lab.locator(".jp-NotebookPanel .jp-CodeCell .cm-content");
  await expect(lines).toHaveText(["pi = 3"], { timeout: 60_000 });
  await lines.first().click();
  await lab.keyboard.type("changed");
  await expect(lines).toHaveText(["pi = 3"]);
  // Command mode: a cell below, which could not be saved.
  await lab.keyboard.press("Escape");
  await lab.keyboard.press("b");
  await expect(lines).toHaveCount(2);
  await lines.last().click();
  await lab.keyboard.type("changed");
  await expect(lines).toHaveText(["pi = 3", ""]);
  const refused = await lab.evaluate(async () => {
    const post = (path: string) => fetch(path, { method: "POST", body: "{}" }).then(({ status }) => status);
    return await Promise.all(["/api/kernels", "/api/sessions", "/api/terminals"].map(post));
  });
  expect(refused).toEqual([403, 403, 403]);

  await page.goto(`/people?search=${encodeURIComponent(viewer)}`);
  await page.getByRole("button", { name: `More for Viewer ${run}` }).click();
  await page.getByRole("menuitem", { name: "Deactivate" }).click();
  await expectAccessible(page, "the dialog before a person is deactivated");
  await page.getByRole("dialog").getByRole("button", { name: "Deactivate" }).click();
  await expect(page.getByRole("cell", { name: "deactivated" })).toBeVisible();
  await guest.goto("/workspaces");
  await expect(guest).toHaveURL(/sign-in/);
  expect(await lab.evaluate(async () => await fetch("/api/contents").then(({ ok }) => ok))).toBe(false);
  await guest.context().close();
});

test("the last launch is made once more by one press, with its dataset", async () => {
  await page.goto("/workspaces");
  await page.getByRole("button", { name: "Launch the last one again" }).click();
  await expect(page).toHaveURL(/\/workspaces\/ws-/);
  await expect(page.getByRole("region", { name: "Datasets" })).toContainText(`~/datasets/${dataset}`);
  const removed = await page.evaluate(async () => {
    const { pathname } = window.location;
    return await fetch(`/api/v1${pathname}`, { method: "DELETE" }).then(({ status }) => status);
  });
  expect(removed).toBe(200);
});
