/** What people do on the pages, by the keyboard alone. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import path from "node:path";
import { type APIRequestContext, type BrowserContext, expect, type Locator, type Page } from "@playwright/test";
import type { Utilisation } from "#server/contracts/utilisation.ts";
import { expectAccessible } from "./fixtures/accessible.ts";
import {
  ADMIN,
  change,
  ensureAdmin,
  joinByApi,
  PASSWORD,
  runByApi,
  signInByApi,
  stopWorkspaces,
  teamByName,
} from "./fixtures/api.ts";
import { beginPoolLastMonth, lastMonth } from "./fixtures/database.ts";
import { Keyboard } from "./fixtures/keyboard.ts";
import { test } from "./fixtures/lane.ts";
import { expectToFit } from "./fixtures/layout.ts";
import { inviteMember, pageOf, signIn } from "./fixtures/portal.ts";

test.describe.configure({ mode: "serial" });

const run = Date.now().toString(36);
const workspace = `keys ${run}`;
const colleague = { email: `colleague-${run}@example.test`, name: `Colleague ${run}` };
const team = `team-${run}`;
const dataset = `numbers-${run}`;

let context: BrowserContext;
let page: Page;
let keys: Keyboard;
let api: APIRequestContext;
/** The workspace's page, and its id. */
let at: string;
let id: string;

const button = (name: string | RegExp) => page.getByRole("button", { name, exact: true }).first();
const inDialog = (name: string) => page.getByRole("dialog").getByRole("button", { name, exact: true });
const closed = async () => await expect(page.getByRole("dialog")).toHaveCount(0);
const item = (name: string) => page.getByRole("menuitem", { name, exact: true });

/** Three seconds of kernels of one block: the GPU is used, and one of its multiprocessors works. */
const ONE_BLOCK = `
import time
import numpy as np
from numba import cuda
@cuda.jit
def alone(out, rounds):
    x = 0.0
    for i in range(rounds):
        x = x * 0.999 + i
    out[0] = x
out = cuda.to_device(np.zeros(1))
alone[1, 1](out, 1)
until = time.monotonic() + 3
while time.monotonic() < until:
    alone[1, 1](out, 1_000_000)
    cuda.synchronize()
print("worked")`;

/** A menu in a row keeps the arrows from the key on that opens it, however soon after it they come. */
async function expectMenusToKeepArrows(...triggers: Locator[]): Promise<void> {
  const items = page.getByRole("menuitem");
  // Twelve rounds have every menu, arrow and pace together.
  for (let round = 0; round < 12; round++) {
    const trigger = triggers[round % triggers.length] ?? triggers[0];
    const arrow = round % 4 < 2 ? "ArrowDown" : "ArrowUp";
    const where = `round ${round}, ${arrow}`;
    if (trigger === undefined) throw new Error("There is no menu.");
    await keys.reach(trigger);
    if (round % 3 === 0) {
      // As fast as keys can come: the browser has drawn nothing between them.
      await Promise.all([page.keyboard.press("Enter"), page.keyboard.press(arrow)]);
    } else {
      const stays = await trigger.evaluate((element, key) => {
        for (const each of ["Enter", key])
          element.dispatchEvent(new KeyboardEvent("keydown", { key: each, bubbles: true, cancelable: true }));
        return document.activeElement === element;
      }, arrow);
      expect(stays, where).toBe(true);
    }
    await expect(page.locator("[role=menuitem]:focus"), where).toHaveCount(1);
    await page.keyboard.press("Home");
    await expect(items.first(), where).toBeFocused();
    await page.keyboard.press("ArrowDown");
    await expect(items.nth(1), where).toBeFocused();
    await page.keyboard.press("ArrowUp");
    await expect(items.first(), where).toBeFocused();
    await page.keyboard.press("Escape");
    await expect(page.getByRole("menu"), where).toHaveCount(0);
    await expect(trigger, where).toBeFocused();
    // And while it is closed they open it, and go nowhere else.
    await page.keyboard.press("ArrowDown");
    await expect(items.first(), where).toBeFocused();
    await page.keyboard.press("Escape");
    await expect(trigger, where).toBeFocused();
  }
}

/** The file that a link downloads, when it is followed by the keyboard. */
async function download(name: string): Promise<string> {
  const link = page.getByRole("link", { name }).first();
  const [file] = await Promise.all([page.waitForEvent("download"), keys.press(link)]);
  return await readFile(await file.path(), "utf8");
}

test.beforeAll(async ({ browser, installation }) => {
  await ensureAdmin(installation);
  api = await signInByApi(installation.portalUrl);
  await stopWorkspaces(api);
  await joinByApi(api, await teamByName(api, "demo"), colleague.email, colleague.name);
  context = await browser.newContext();
  page = await context.newPage();
  keys = new Keyboard(page);
});

test.afterAll(async () => {
  await stopWorkspaces(api);
  await api.dispose();
  await context.close();
});

test("somebody signs in and launches a workspace", async () => {
  await page.goto("/sign-in");
  await keys.write(page.getByLabel("E-mail"), ADMIN);
  await keys.write(page.getByLabel("Password"), PASSWORD);
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/\/workspaces$/);
  await keys.press(page.getByRole("link", { name: "Launch", exact: true }));
  await expect(page).toHaveURL(/\/workspaces\/new/);
  await keys.choose(page.getByRole("radio", { name: /CUDA Python/ }));
  await keys.write(page.getByLabel("Name"), workspace);
  await keys.press(button("Launch"));
  await expect(page).toHaveURL(/\/workspaces\/ws-/);
  await expect(button(`Open ${workspace} in a new tab`)).toBeVisible({ timeout: 90_000 });
  at = new URL(page.url()).pathname;
  id = at.split("/").at(-1) ?? "";
});

test("the timers of a workspace and of its GPU are extended", async () => {
  expect(await runByApi(api, id, "train.ipynb", "%gpu attach 0.5")).toContain("Attached 0.5 GPU");
  expect(await runByApi(api, id, "train.ipynb", ONE_BLOCK)).toContain("worked");
  const before = (await (await api.get("/api/v1/leases")).json()) as { leases: { expiresAt: string }[] };
  await page.goto(at);
  await keys.press(button("Extend 1 h: the GPU"));
  await expect(async () => {
    const { leases } = (await (await api.get("/api/v1/leases")).json()) as typeof before;
    const longer = Date.parse(leases[0]?.expiresAt ?? "") - Date.parse(before.leases[0]?.expiresAt ?? "");
    expect(longer).toBeGreaterThan(0);
  }).toPass();
});

test("a variable and a secret are set, taken by a restart, and only the variable is shown", async () => {
  await page.goto(`${at}/settings`);
  for (const [name, value] of [
    ["EPOCHS", "20"],
    ["API_KEY", "not for anybody"],
  ] as const) {
    await keys.press(button("Add variable"));
    const dialog = page.getByRole("dialog");
    await keys.write(dialog.getByLabel("Name"), name);
    await keys.write(dialog.getByLabel("Value"), value);
    if (name === "API_KEY") await keys.tick(dialog.getByRole("checkbox", { name: "Secret" }));
    await keys.press(inDialog("Save"));
    await closed();
  }
  await expect(page.getByRole("row", { name: /EPOCHS/ })).toContainText("20");
  await expect(page.getByRole("row", { name: /API_KEY/ })).toContainText("secret");
  await keys.pick(button(`More for ${workspace}`), item("Restart"));
  await expect(page.getByRole("dialog")).toContainText("what they hold in memory is lost");
  await keys.press(inDialog("Restart workspace"));
  await closed();
  await page.goto(at);
  await expect(page.getByText("Steps of start 2")).toBeVisible();
  await expect(button(`Open ${workspace} in a new tab`)).toBeVisible({ timeout: 90_000 });
  const code = 'import os; print(os.environ["EPOCHS"], len(os.environ["API_KEY"]))';
  expect(await runByApi(api, id, "train.ipynb", code)).toContain("20 15");
  await page.goto(`${at}/settings`);
  await keys.press(button("Remove EPOCHS"));
  await keys.press(inDialog("Remove variable"));
  await closed();
  await expect(page.getByRole("row", { name: /EPOCHS/ })).toHaveCount(0);
});

test("a notebook that computes is interrupted and keeps its variables, then it is shut down", async () => {
  await runByApi(api, id, "train.ipynb", "kept = 42");
  await page.goto(`${at}/notebooks`);
  const row = page.getByRole("row", { name: /train\.ipynb/ });
  await expect(row).toContainText("idle");
  // What it does is shown as it changes.
  const busy = runByApi(api, id, "train.ipynb", "while True: pass");
  await expect(row).toContainText("busy");
  await keys.press(button("Interrupt train.ipynb"));
  expect(await busy).toContain("KeyboardInterrupt");
  await expect(row).toContainText("idle");
  expect(await runByApi(api, id, "train.ipynb", "print(kept)")).toContain("42");
  await keys.press(button("Shut down train.ipynb"));
  await expect(page.getByRole("dialog")).toContainText("What it holds in memory is lost.");
  await keys.press(inDialog("Shut down"));
  await closed();
  await expect(page.getByText("No notebook runs")).toBeVisible();
});

test("a colleague is invited into a workspace, becomes an editor, and is taken out again", async () => {
  await page.goto(`${at}/people`);
  await keys.press(button("Invite"));
  await keys.write(page.getByRole("dialog").getByLabel("Name or e-mail"), colleague.email);
  await keys.press(inDialog("Invite"));
  await closed();
  const row = page.getByRole("row", { name: new RegExp(colleague.name) });
  await expect(row).toContainText("viewer");
  await keys.press(button(`Change the role of ${colleague.name}`));
  await keys.select(page.getByRole("dialog").getByLabel("Role"), "editor");
  await keys.press(inDialog("Save"));
  await closed();
  await expect(row).toContainText("editor");
  await keys.press(button(`Remove ${colleague.name} from ${workspace}`));
  await keys.press(inDialog("Remove collaborator"));
  await closed();
  await expect(row).toHaveCount(0);
});

test("a workspace is duplicated, arrow keys move between rows, the duplicate is removed with its files", async () => {
  await page.goto(at);
  await keys.pick(button(`More for ${workspace}`), item("Duplicate"));
  await keys.write(page.getByRole("dialog").getByLabel("Name"), `copy ${run}`);
  await keys.press(inDialog("Launch the duplicate"));
  await expect(page.getByRole("heading", { level: 1, name: `copy ${run}` })).toBeVisible();
  const copy = page.url();
  await page.goto("/workspaces");
  const own = page.getByRole("table", { name: "Workspaces", exact: true });
  const names = own.locator("td:first-child a");
  await keys.reach(names.nth(0));
  await page.keyboard.press("ArrowDown");
  await expect(names.nth(1)).toBeFocused();
  await page.keyboard.press("ArrowUp");
  await expect(names.nth(0)).toBeFocused();
  await page.keyboard.press("ArrowUp");
  await expect(names.nth(0)).toBeFocused();
  const menus = own.getByRole("button", { name: /^More for / });
  await expectMenusToKeepArrows(menus.first(), menus.last());
  await page.goto(copy);
  await keys.pick(button(`More for copy ${run}`), item("Remove"));
  await expect(page.getByRole("dialog")).toContainText("Files and installed packages are kept for 7 days");
  await keys.write(page.getByRole("dialog").getByLabel(`Type "copy ${run}" to confirm`), `copy ${run}`);
  await keys.press(inDialog("Remove workspace"));
  await expect(page).toHaveURL(/\/workspaces$/);
  await expect(page.getByRole("link", { name: `copy ${run}` })).toHaveCount(0, { timeout: 60_000 });
  await keys.press(button(`Delete copy ${run} now`));
  await keys.write(page.getByRole("dialog").getByLabel(`Type "copy ${run}" to confirm`), `copy ${run}`);
  await keys.press(inDialog("Delete files"));
  await expect(button(`Delete copy ${run} now`)).toHaveCount(0);
});

test("a team is made, gets a quota whose effect is shown first, and one of its people leads it", async () => {
  await page.goto("/teams");
  await keys.press(button("New team"));
  await keys.write(page.getByRole("dialog").getByLabel("Name"), team);
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 1, name: `Team ${team}` })).toBeVisible();
  await keys.press(button("Add GPU type"));
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByLabel("GPU type")).toHaveValue("soft");
  await keys.write(dialog.getByLabel("Guaranteed"), "0.25");
  await keys.write(dialog.getByLabel("Limit", { exact: true }), "0.5");
  await expect(dialog.getByText("unallocated", { exact: false })).toBeVisible();
  await keys.press(inDialog("Save quota"));
  await closed();
  await expect(page.getByText(`The quota of ${team} for soft is saved.`).first()).toBeVisible();
  await change(api, "post", `/teams/${await teamByName(api, team)}/members`, { email: colleague.email });
  await page.goto(`/teams/${team}`);
  await keys.pick(button(`More for ${colleague.name}`), item("Make a team lead"));
  await expect(page.getByRole("row", { name: new RegExp(colleague.name) })).toContainText("team lead");
});

test("a lead asks for more, and an admin approves it", async ({ browser, installation }) => {
  const theirs = await pageOf(browser, installation, colleague.email);
  await theirs.goto(`/teams/${team}`);
  const own = new Keyboard(theirs);
  await own.press(theirs.getByRole("button", { name: "Request more" }));
  const dialog = theirs.getByRole("dialog");
  await own.write(dialog.getByLabel("How much more"), "0.25");
  await own.select(dialog.getByLabel("For how long"), "a week");
  await own.write(dialog.getByLabel("What for"), "The week before the deadline");
  await own.press(dialog.getByRole("button", { name: "Send request" }));
  await expect(dialog).toHaveCount(0);
  await page.goto(`/teams/${team}`);
  const request = page.getByRole("row", { name: /The week before the deadline/ });
  await expect(request).toContainText("asked");
  await keys.press(button(`Approve the request of ${colleague.name}`));
  await expect(request).toContainText("approved");
  await theirs.context().close();
});

test("an invitation is revoked, and its link opens nothing any more", async ({ browser }) => {
  const email = `late-${run}@example.test`;
  const link = await inviteMember(page, team, email);
  await page.goto(`/teams/${team}`);
  await keys.press(button(`Revoke the invitation of ${email}`));
  await keys.press(inDialog("Revoke"));
  await closed();
  await expect(page.getByRole("row", { name: new RegExp(email) })).toHaveCount(0);
  const late = await (await browser.newContext()).newPage();
  await late.goto(link);
  await expect(late.getByText("was used already or is too old", { exact: false })).toBeVisible();
  await late.context().close();
});

test("somebody who was deactivated is let in again", async ({ browser }) => {
  const { users } = (await (await api.get(`/api/v1/users?search=${colleague.email}`)).json()) as {
    users: { id: string }[];
  };
  await change(api, "post", `/users/${users[0]?.id}/deactivate`);
  await page.goto(`/people?search=${colleague.email}`);
  await expect(page.getByRole("cell", { name: "deactivated" })).toBeVisible();
  await keys.pick(button(`More for ${colleague.name}`), item("Reactivate"));
  await expect(page.getByText(`${colleague.name} may sign in again.`).first()).toBeVisible();
  const theirs = await (await browser.newContext()).newPage();
  await signIn(theirs, colleague.email);
  await theirs.context().close();
});

test("somebody who forgot the password chooses a new one by an admin's link", async ({ browser, installation }) => {
  const theirs = await pageOf(browser, installation, colleague.email);
  await page.goto(`/people?search=${colleague.email}`);
  await keys.pick(button(`More for ${colleague.name}`), item("New password"));
  await keys.press(inDialog("Make the link"));
  const link = await page.getByRole("textbox", { name: "Link for a new password" }).inputValue();
  await keys.press(inDialog("Done"));
  await closed();
  const other = await (await browser.newContext()).newPage();
  const own = new Keyboard(other);
  for (const width of [390, 1440]) {
    await other.setViewportSize({ width, height: 900 });
    await other.goto(link);
    await expectAccessible(other, `new password ${width}`);
    await expectToFit(other, `new password ${width}`);
  }
  for (const label of ["New password", "New password again"])
    await own.write(other.getByLabel(label, { exact: true }), PASSWORD);
  await own.press(other.getByRole("button", { name: "Set the password" }));
  await expect(other).toHaveURL(/\/workspaces$/);
  // The window that was open is signed out, and the link opens nothing any more.
  await theirs.goto("/workspaces");
  await expect(theirs).toHaveURL(/\/sign-in/);
  await expect(theirs.getByText("Password forgotten?", { exact: false })).toBeVisible();
  await theirs.goto(link);
  await expect(theirs.getByText("was used already or is too old", { exact: false })).toBeVisible();
  for (const each of [theirs, other]) await each.context().close();
});

test("a server is drained after it is said whom that concerns, and takes leases again", async () => {
  await page.goto("/pool");
  const server = page.getByRole("region", { name: "GPU server local" });
  await keys.pick(button("More for local"), item("Drain"));
  await expect(page.getByRole("dialog").getByText("0.0 soft would take leases instead of 1.0")).toBeVisible();
  await keys.press(inDialog("Drain server"));
  await closed();
  await expect(server.getByText("draining").first()).toBeVisible();
  await page.goto("/health");
  const part = page.getByRole("listitem").filter({ has: page.getByText("local", { exact: true }) });
  await expect(part).toContainText("warning");
  await page.goto("/pool");
  await keys.pick(button("More for local"), item("Take leases again"));
  await expect(server.getByText("draining")).toHaveCount(0);
});

test("a dataset is registered, described, and removed; its files stay", async ({ installation }) => {
  const folder = path.join(installation.stateDir, "datasets", dataset);
  await mkdir(folder, { recursive: true });
  await writeFile(path.join(folder, "one.txt"), "1");
  await page.goto("/datasets");
  await keys.press(button("Register"));
  const dialog = page.getByRole("dialog");
  await keys.write(dialog.getByLabel("Name"), dataset);
  await keys.select(dialog.getByLabel("For"), "everybody");
  await keys.write(dialog.getByLabel("Folder"), folder);
  await keys.press(inDialog("Register"));
  await closed();
  await keys.press(button(`Edit ${dataset}`));
  await keys.write(dialog.getByLabel("Description"), "Numbers from one on");
  await keys.press(inDialog("Save"));
  await closed();
  const row = page.getByRole("row", { name: new RegExp(dataset) });
  await expect(row).toContainText("Numbers from one on");
  await keys.press(button(`Remove ${dataset}`));
  await expect(page.getByRole("dialog")).toContainText("Its files stay where they are.");
  await keys.press(inDialog("Remove dataset"));
  await closed();
  await expect(row).toHaveCount(0);
  expect(await readFile(path.join(folder, "one.txt"), "utf8")).toBe("1");
});

test("a GPU type gets a price, and a past month with a GPU is closed", async ({ installation }) => {
  await page.goto("/costs");
  await keys.press(button(/ price of soft$/));
  await keys.write(page.getByRole("dialog").getByLabel("Amount"), "2.15");
  await keys.press(inDialog("Save price"));
  await closed();
  await expect(page.getByRole("region", { name: "Hardware" })).toContainText("2.15");
  expect(await download("Download as CSV")).toMatch(/^[^\r\n]*hours/i);
  const month = lastMonth();
  await beginPoolLastMonth(installation);
  await page.goto(`/costs?month=${month}`);
  await keys.press(button(`Close ${month}`));
  await expect(page.getByRole("dialog")).toContainText("it cannot be opened again");
  await keys.press(inDialog("Close the month"));
  await closed();
  await expect(page.getByText(/^closed by First Admin on /)).toBeVisible();
  await expect(button(`Close ${month}`)).toHaveCount(0);
  // On paper: the costs alone, in light colours whatever the screen has.
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  await expect(page.getByRole("heading", { name: `Costs of ${month}` })).toBeVisible();
  await expect(
    page.getByRole("region", { name: "Costs by team, person or workspace", exact: true }).getByRole("table"),
  ).toBeVisible();
  await expect(page.getByRole("button", { name: "GPU-hours" })).toBeVisible();
  for (const part of [
    page.getByRole("banner"),
    page.getByRole("navigation"),
    page.getByRole("link", { name: "Skip to the page" }),
    page.getByRole("link", { name: "Download as CSV" }),
    page.getByRole("main").getByRole("button", { name: /price|^Close/ }),
  ]) {
    await expect(part.filter({ visible: true })).toHaveCount(0);
  }
  expect(await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)).toBe(
    "rgb(255, 255, 255)",
  );
  expect(await page.evaluate(() => getComputedStyle(document.body).color)).toBe("rgb(20, 25, 27)");
  await page.emulateMedia({ media: null, colorScheme: null });
});

test("a price is removed", async () => {
  await page.goto("/costs");
  await keys.press(button("Change price of soft"));
  await keys.press(inDialog("Remove price"));
  await expect(page.getByRole("dialog")).toContainText("Closed months stay as they are.");
  await expectAccessible(page, "what is lost with a price");
  await keys.press(inDialog("Remove price"));
  await closed();
  await expect(button("Set price of soft")).toBeVisible();
});

test("a quota is removed", async () => {
  await page.goto(`/teams/${team}`);
  await keys.press(button("Edit soft quota"));
  await keys.press(inDialog("Remove quota"));
  await expect(page.getByRole("dialog")).toContainText("Its past usage stays in the accounts.");
  await expectAccessible(page, "what is lost with a quota");
  await keys.press(inDialog("Remove quota"));
  await closed();
  await expect(button("Edit soft quota")).toHaveCount(0);
});

test("use is asked for by person and downloaded, for people and over time", async () => {
  await page.goto("/usage");
  await keys.select(page.getByLabel("By", { exact: true }), "person");
  await keys.press(button("Show"));
  await expect(page).toHaveURL(/by=person/);
  await expect(page.getByRole("table").filter({ hasText: "First Admin" }).first()).toBeVisible();
  const file = await download("Download as CSV");
  expect(file).toContain("First Admin");
  expect(file.split("\r\n")[0]).toContain(",effective GPU-hours,effective known of used GPU-hours,");
});

test("who used a GPU by a kernel of one block is told how little of it was effective", async () => {
  const answer = await api.get(`/api/v1/utilisation?workspaceId=${id}`);
  const { total } = (await answer.json()) as { total: Utilisation["total"] };
  // The software GPU counts it: of nothing that it did is it not known.
  expect(total.used).toBeGreaterThan(0);
  expect(total.effectiveKnown).toBeCloseTo(total.used, 6);
  expect(total.effectiveEstimated).toBe(0);
  const share = (total.effective ?? Number.NaN) / total.used;
  expect(Math.abs(share - 1 / availableParallelism())).toBeLessThan(0.15);
  await page.goto("/usage?by=workspace");
  await keys.press(page.getByRole("link", { name: workspace, exact: true }));
  await expect(page.getByText(`Only workspace ${workspace}`)).toBeVisible();
  await expect(page.getByText("GPU cores busy while held")).toBeVisible();
  await expect(page.getByText(/^\d[\d.]* GPU-h of multiprocessors at work \(SM active\)$/)).toBeVisible();
  await expect(page.getByText("A kernel that fills a quarter of them uses the GPU", { exact: false })).toBeVisible();
});

test("the demand of the log is played again on a larger pool", async () => {
  await page.goto("/what-if");
  await keys.write(page.getByLabel("GPUs"), "2");
  await keys.press(button("Simulate"));
  await expect(page).toHaveURL(/run=wif-/);
  await expect(page.getByRole("heading", { name: "soft" })).toBeVisible({ timeout: 60_000 });
  const [header, ...lines] = (await download("Download as CSV")).trim().split("\r\n");
  expect(header).toContain("GPUs now,GPUs proposed");
  expect(lines[0]).toMatch(/^soft,,1,2,/);
});

test("the pages are dark for whoever chooses so, until they choose otherwise", async () => {
  await page.goto("/workspaces");
  const choose = async (theme: string) => {
    await keys.pick(button("First Admin"), page.getByRole("menuitemradio", { name: theme }));
    await page.keyboard.press("Escape");
  };
  const ground = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await ground();
  await choose("Dark");
  await expect.poll(ground).not.toBe(light);
  const dark = await ground();
  await page.goto("/gpus");
  expect(await ground()).toBe(dark);
  await choose("As the system");
  await expect.poll(ground).toBe(light);
});
