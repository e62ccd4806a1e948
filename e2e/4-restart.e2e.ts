/** An installation that is stopped and started again: running notebooks go on with what they hold in memory. */
import { expect, type Page } from "@playwright/test";
import { launchByApi, signInByApi, stopWorkspaces } from "./fixtures/api.ts";
import { test } from "./fixtures/lane.ts";
import { Notebook } from "./fixtures/notebook.ts";
import { openLab, pageOf } from "./fixtures/portal.ts";

// It starts an installation.
test.describe.configure({ timeout: 420_000 });

test("a notebook keeps its variables and gets a GPU again after the installation was stopped and started", async ({
  browser,
  installation,
}) => {
  const page = await pageOf(browser, installation);
  // The API is asked again after the restart: the sign-in sessions are kept as well.
  const api = await signInByApi(installation.portalUrl);
  // A workspace of an earlier journey would hold a part of the device.
  await stopWorkspaces(api);
  const { id } = await launchByApi(api, "kept");
  const before = await openLabOf(page, id);
  const notebook = await Notebook.create(before);
  const kernel = await notebook.run("import os; x = 42; print(os.getpid())");
  expect(await notebook.run("%gpu attach 0.5")).toContain("Attached 0.5 GPU");
  await before.keyboard.press("ControlOrMeta+s");
  await before.close();

  await installation.restart();

  // JupyterLab restores the open notebook.
  const after = new Notebook(await openLabOf(page, id));
  await after.idle();
  expect(await after.run("print(x, os.getpid())")).toBe(`42 ${kernel}`);
  expect(await after.run("%gpu detach")).not.toContain("Traceback");
  expect(await after.run("%gpu attach 0.5")).toContain("Attached 0.5 GPU");
  await stopWorkspaces(api);
  await api.dispose();
  await page.context().close();
});

async function openLabOf(page: Page, id: string): Promise<Page> {
  await page.goto(`/workspaces/${id}`);
  return await openLab(page, "kept");
}
