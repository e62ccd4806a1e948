/** The end of the portal's session in an open JupyterLab: nothing is lost, and a sign-in reconnects. */
import { expect, type Locator, type Page } from "@playwright/test";
import { ADMIN, ensureAdmin, launchByApi, PASSWORD, signInByApi } from "./fixtures/api.ts";
import { test } from "./fixtures/lane.ts";
import { Notebook } from "./fixtures/notebook.ts";
import { openLab, signIn } from "./fixtures/portal.ts";

test.describe.configure({ mode: "serial" });

const name = `session ${Date.now().toString(36)}`;

let page: Page;
let notebook: Notebook;

test.beforeAll(async ({ browser, installation }) => {
  await ensureAdmin(installation);
  const api = await signInByApi(installation.portalUrl);
  const { id } = await launchByApi(api, name);
  await api.dispose();
  // A sign-in of its own: other files share theirs.
  page = await (await browser.newContext({ baseURL: installation.portalUrl })).newPage();
  await signIn(page, ADMIN);
  await page.goto(`/workspaces/${id}`);
  notebook = await Notebook.create(await openLab(page, name));
});

test.afterAll(async () => await page.context().close());

/** Signs out in the portal's tab; gives the dialog that JupyterLab shows then. */
async function signOut(): Promise<Locator> {
  await page.bringToFront();
  await page.getByRole("button", { name: "First Admin" }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await expect(page).toHaveURL(/sign-in/);
  await notebook.page.bringToFront();
  const dialog = notebook.page.getByRole("dialog").filter({ hasText: "Session expired" });
  await expect(dialog).toContainText("Sign in to reconnect.", { timeout: 60_000 });
  return dialog;
}

test("JupyterLab keeps unsaved text while the session is over, and reconnects after the dialog's sign-in", async () => {
  const lab = notebook.page;
  await notebook.run("x = 42");
  const line = notebook.panel.locator(".jp-CodeCell .cm-content").last();
  await line.click();
  await lab.keyboard.insertText("# not saved");
  const dialog = await signOut();
  const [portal] = await Promise.all([
    page.context().waitForEvent("page"),
    dialog.getByRole("button", { name: "Sign in" }).click(),
  ]);
  await portal.getByLabel("E-mail").fill(ADMIN);
  await portal.getByLabel("Password").fill(PASSWORD);
  await portal.getByRole("button", { name: "Sign in", exact: true }).click();
  await expect(portal).toHaveURL(/\/workspaces\/ws-/);
  await (await openLab(portal, name)).close();
  await portal.close();
  await lab.bringToFront();
  await expect(line).toHaveText("# not saved");
  expect(await notebook.run("print(x)")).toContain("42");
});

test("a sign-in in another tab closes JupyterLab's dialog, and the kernel still has its variables", async () => {
  const dialog = await signOut();
  await page.bringToFront();
  await signIn(page, ADMIN);
  await page.goto("/workspaces");
  await (await openLab(page, name)).close();
  await expect(dialog).toHaveCount(0, { timeout: 60_000 });
  expect(await notebook.run("print(x + 1)")).toContain("43");
});
