/**
 * An environment is proposed, locked, built and tested on a real GPU, approved and launched; then comes its next
 * version. And, as the installation of this lane has an identity provider: the rights that its groups give.
 */
import { expect, type Page } from "@playwright/test";
import { expectAccessible } from "./fixtures/accessible.ts";
import { signInByApi, stopWorkspaces } from "./fixtures/api.ts";
import { Keyboard } from "./fixtures/keyboard.ts";
import { test } from "./fixtures/lane.ts";
import { pageOf } from "./fixtures/portal.ts";

// Two environments are downloaded and built.
test.describe.configure({ mode: "serial", timeout: 420_000 });

const run = Date.now().toString(36);
const title = `Words ${run}`;
const workspace = `words ${run}`;
let page: Page;
let launched: string;

test.beforeAll(async ({ browser, installation }) => {
  page = await pageOf(browser, installation);
  const api = await signInByApi(installation.portalUrl);
  // A workspace of an earlier journey would hold a part of the device, which the check of an environment needs.
  await stopWorkspaces(api);
  await api.dispose();
});

test.afterAll(async () => {
  await page.context().close();
});

/** Waits for the whole check and approves. */
async function passAndApprove(): Promise<void> {
  // A proposal is built and tested, which takes minutes on a busy machine.
  test.setTimeout(600_000);
  const steps = page.getByRole("list", { name: "Steps of the check" });
  await expect(page.getByText("passed, to be approved")).toBeVisible({ timeout: 400_000 });
  await expect(steps.getByText("computed 6 * 7", { exact: false }).last()).toBeVisible();
  const keys = new Keyboard(page);
  await keys.press(page.getByRole("button", { name: "Approve and roll out" }));
  const dialog = page.getByRole("dialog");
  await expect(dialog).toBeVisible();
  await expectAccessible(page, "the approval of an environment");
  await keys.press(dialog.getByRole("button", { name: "Approve" }));
  await expect(dialog).toHaveCount(0);
  await expect(page.getByText("offered", { exact: true })).toBeVisible();
}

test("packages are proposed, locked, built and tested, and offered when they are approved", async () => {
  await page.goto("/environments");
  await page.getByRole("button", { name: "Propose" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Title").fill(title);
  await dialog.getByLabel("Name").fill(`words-${run}`);
  await dialog.getByLabel("Packages").fill("--index-url=elsewhere");
  await dialog.getByLabel("Imports to test").fill("humanize");
  await dialog.getByLabel("Cores, at least").fill("half");
  await dialog.getByLabel("Memory, at least").fill("0.5");
  await expectAccessible(page, "the form of a proposal");
  await dialog.getByRole("button", { name: "Propose" }).click();
  await expect(dialog.getByText("A number like 2 or 0.5", { exact: false })).toBeVisible();
  await dialog.getByLabel("Cores, at least").fill("0.5");
  await dialog.getByRole("button", { name: "Propose" }).click();
  await expect(dialog.getByText("is no package with versions", { exact: false })).toBeVisible();
  await dialog.getByLabel("Packages").fill("humanize<4.12");
  await dialog.getByRole("button", { name: "Propose" }).click();
  await expect(page.getByRole("heading", { name: title })).toBeVisible();
  await expect(page.getByText("from 0.5 cores and 512 MiB")).toBeVisible();
  await page.getByRole("button", { name: "Withdraw proposal" }).click();
  await expect(dialog).toBeVisible();
  await expectAccessible(page, "what is lost when a proposal is withdrawn");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await passAndApprove();
  await expect(page.getByRole("cell", { name: "humanize" })).toBeVisible();
  await expectAccessible(page, "an environment that was approved");
});

test("a workspace is launched with it", async () => {
  await page.goto("/workspaces/new");
  await page.getByRole("radio", { name: title }).check();
  await expect(page.getByText("(from 0.5 cores and 512 MiB)", { exact: false })).toBeVisible();
  await page.getByLabel("Name").fill(workspace);
  await page.getByRole("button", { name: "Launch", exact: true }).click();
  await expect(page.getByRole("button", { name: `Open ${workspace} in a new tab` })).toBeVisible({ timeout: 90_000 });
  launched = page.url();
});

test("its next version is offered to the workspace, which takes it with a restart", async () => {
  await page.goto("/environments");
  await page.getByRole("link", { name: title }).click();
  await page.getByRole("button", { name: "Propose a new version" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Packages").fill("humanize>=4.12");
  await dialog.getByRole("button", { name: "Propose" }).click();
  await expect(dialog).toHaveCount(0);
  await passAndApprove();
  await page.goto(launched);
  await expect(page.getByText("There is a newer version", { exact: false })).toBeVisible();
  await expectAccessible(page, "a workspace with an update");
  await page.getByRole("button", { name: "Restart with the update" }).click();
  await expectAccessible(page, "what an update ends");
  await page.getByRole("dialog").getByRole("button", { name: "Restart with the update" }).click();
  await expect(page.getByText("There is a newer version", { exact: false })).toHaveCount(0);
  await expect(page.getByText("Steps of start 2")).toBeVisible();
  await expect(page.getByRole("button", { name: `Open ${workspace} in a new tab` })).toBeVisible({ timeout: 90_000 });
});

test("a launch takes the older version where somebody chooses it, and so does the last one again", async () => {
  await page.goto("/workspaces/new");
  const keys = new Keyboard(page);
  await keys.choose(page.getByRole("radio", { name: title }));
  const version = page.getByLabel("Version", { exact: true });
  await expect(version).toHaveValue("");
  await keys.reach(version);
  await page.keyboard.press("ArrowDown");
  await expect(page.getByText("An older one, kept until you update the workspace.", { exact: false })).toBeVisible();
  await expectAccessible(page, "a launch with an older version");
  await keys.write(page.getByLabel("Name", { exact: true }), `older ${run}`);
  await keys.press(page.getByRole("button", { name: "Launch", exact: true }));
  await expect(page.getByText("There is a newer version", { exact: false })).toBeVisible();
  await page.goto("/workspaces/new");
  await expect(page.getByText(new RegExp(`${title} \\S+, team demo`))).toBeVisible();
});

test("what a group of the identity provider gives is entered and removed by the keyboard alone", async () => {
  const keys = new Keyboard(page);
  const dialog = page.getByRole("dialog");
  await page.goto("/people");
  await keys.press(page.getByRole("button", { name: "Add group" }));
  await keys.write(dialog.getByLabel("Group"), "vision-leads");
  await keys.select(dialog.getByLabel("Gives"), "team lead");
  await expectAccessible(page, "the form of a group");
  await keys.press(dialog.getByRole("button", { name: "Add group" }));
  await expect(dialog).toHaveCount(0);
  const row = page.getByRole("row", { name: /vision-leads/ });
  await expect(row).toContainText("team lead");
  await expectAccessible(page, "/people with a group");
  await keys.press(page.getByRole("button", { name: "Remove vision-leads" }));
  await expect(dialog).toBeVisible();
  await expectAccessible(page, "what is lost with a group");
  await keys.press(dialog.getByRole("button", { name: "Remove group" }));
  await expect(row).toHaveCount(0);
});
