/** An installation that is stopped and started again: running notebooks go on with what they hold in memory. */
import { type APIRequestContext, expect, type Page, test } from "@playwright/test";
import { launchByApi, signInByApi, stopWorkspaces } from "./fixtures/api.ts";
import { type Installation, startInstallation } from "./fixtures/installation.ts";
import { BUILT } from "./fixtures/lane.ts";
import { Notebook } from "./fixtures/notebook.ts";
import { ADMIN, openLab, PASSWORD, signIn } from "./fixtures/portal.ts";

const env = { SLUICE_ADMIN_EMAIL: ADMIN, SLUICE_ADMIN_PASSWORD: PASSWORD };

// It starts an installation twice.
test.describe.configure({ timeout: 420_000 });

test("a notebook keeps its variables and gets a GPU again after the installation was stopped and started", async ({
  browser,
}) => {
  let installation: Installation = await startInstallation({ env, builtBy: BUILT });
  let api: APIRequestContext | undefined;
  try {
    await installation.ready;
    api = await signInByApi(installation.portalUrl);
    const { id } = await launchByApi(api, "kept");
    const context = await browser.newContext({ baseURL: installation.portalUrl });
    const page = await context.newPage();
    await signIn(page, ADMIN);
    const before = await labOf(page, id);
    const notebook = await Notebook.create(before);
    const kernel = await notebook.run("import os; x = 42; print(os.getpid())");
    expect(await notebook.run("%gpu attach 0.5")).toContain("Attached 0.5 GPU");
    await before.keyboard.press("ControlOrMeta+s");
    await before.close();

    await installation.stop({ keepState: true });
    installation = await startInstallation({ env, stateDir: installation.stateDir, ports: installation.ports });
    await installation.ready;

    // Nobody signs in again: the sessions are kept as well.
    // JupyterLab restores what was open.
    const after = new Notebook(await labOf(page, id));
    await after.idle();
    expect(await after.run("print(x, os.getpid())")).toBe(`42 ${kernel}`);
    expect(await after.run("%gpu detach")).not.toContain("Traceback");
    expect(await after.run("%gpu attach 0.5")).toContain("Attached 0.5 GPU");
    await context.close();
  } finally {
    if (api !== undefined) await stopWorkspaces(api);
    await installation.stop();
  }
});

async function labOf(page: Page, id: string): Promise<Page> {
  await page.goto(`/workspaces/${id}`);
  return await openLab(page, "kept");
}
