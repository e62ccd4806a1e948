/** JupyterLab as a part of the portal: its examples, its appearance, and the end of the portal's session. */
import { expect, type Page } from "@playwright/test";
import { ADMIN, ensureAdmin, launchByApi, PASSWORD, signInByApi } from "./fixtures/api.ts";
import { test } from "./fixtures/lane.ts";
import { Notebook } from "./fixtures/notebook.ts";
import { openLab, signIn } from "./fixtures/portal.ts";

test.describe.configure({ mode: "serial" });

const name = `lab ${Date.now().toString(36)}`;

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

test("the launcher lists the examples of the home and opens one", async () => {
  const lab = notebook.page;
  // The editor of a cell has another use for the launcher's keys.
  await lab.keyboard.press("Escape");
  await lab.keyboard.press("ControlOrMeta+Shift+L");
  const cards = lab.locator('.jp-LauncherCard[data-category="Examples"]').filter({ visible: true });
  await expect(cards.filter({ hasText: "kmeans-digits" })).toHaveCount(1);
  await cards.filter({ hasText: "mandelbrot" }).click();
  await expect(lab.getByRole("tab", { name: "mandelbrot.ipynb" })).toBeVisible();
  await expect(notebook.panel.locator(".jp-Cell").first()).toBeVisible();
  await lab.getByRole("tab", { name: "Untitled.ipynb" }).click();
  await notebook.idle();
});

test("JupyterLab has the portal's appearance, also when it changes and after a reload", async () => {
  const lab = notebook.page;
  const body = lab.locator("body");
  const has = async (theme: string) => await expect(body).toHaveAttribute("data-jp-theme-name", theme);
  const choose = async (appearance: string) => {
    await page.goto("/settings");
    const noted = page.waitForResponse((answer) => answer.url().endsWith("/api/v1/me"));
    await page.getByLabel("Appearance").selectOption(appearance);
    await noted;
    await lab.bringToFront();
    // Playwright has every page believe that it is in front.
    await lab.evaluate(() => window.dispatchEvent(new Event("focus")));
  };
  await has("JupyterLab Light");
  await lab.emulateMedia({ colorScheme: "dark" });
  await has("JupyterLab Dark");
  await choose("light");
  await has("JupyterLab Light");
  await choose("dark");
  await has("JupyterLab Dark");
  await lab.reload();
  await notebook.idle();
  await has("JupyterLab Dark");
});

test("after a sign-out JupyterLab keeps unsaved text, and reconnects to its kernel when the person signs in", async () => {
  const lab = notebook.page;
  await notebook.run("x = 42");
  const line = notebook.panel.locator(".jp-CodeCell .cm-content").last();
  await line.click();
  await lab.keyboard.insertText("# not saved");

  await page.bringToFront();
  await page.getByRole("button", { name: "First Admin" }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await expect(page).toHaveURL(/sign-in/);
  await lab.bringToFront();
  const dialog = lab.getByRole("dialog").filter({ hasText: "Session expired" });
  await expect(dialog).toContainText("Sign in to reconnect.", { timeout: 90_000 });

  const [portal] = await Promise.all([
    page.context().waitForEvent("page"),
    dialog.getByRole("button", { name: "Sign in" }).click(),
  ]);
  await portal.getByLabel("E-mail").fill(ADMIN);
  await portal.getByLabel("Password").fill(PASSWORD);
  await portal.getByRole("button", { name: "Sign in", exact: true }).click();
  await (await openLab(portal, name)).close();
  await portal.close();
  await lab.bringToFront();
  await expect(line).toHaveText("# not saved");
  expect(await notebook.run("print(x)", 120_000)).toContain("42");
});
