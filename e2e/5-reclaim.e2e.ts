/**
 * Leases that end though their holder has not given them back: what is lent comes back with notice when its team asks
 * for it, and what does nothing is given back. The times are short by the holding team's own policy.
 */
import { type APIRequestContext, expect, type Page } from "@playwright/test";
import { ADMIN, ApiNotebook, change, launchByApi, signInByApi, stopWorkspaces } from "./fixtures/api.ts";
import { test } from "./fixtures/lane.ts";
import { Notebook } from "./fixtures/notebook.ts";
import { openLab, pageOf } from "./fixtures/portal.ts";

/** The shortest that a policy may give. */
const NOTICE_SECONDS = 10;
const IDLE_SECONDS = 60;
const run = Date.now().toString(36);
const owner = `owner-${run}`;

/** Work that goes on until its program is told to save. */
const UNTIL_TOLD = [
  "import sluice_gpu, threading",
  "told = threading.Event()",
  "sluice_gpu.on_reclaim(told.set)",
  `print("saved in time:", told.wait(${NOTICE_SECONDS * 3}))`,
].join("\n");

const POLICY = { maxLeaseSeconds: null, idleSeconds: null, coTenancy: "any" };

type Team = { id: string; name: string };

async function put(api: APIRequestContext, path: string, data: Record<string, unknown>): Promise<void> {
  const answer = await api.put(`/api/v1${path}`, { data });
  expect(answer.status(), await answer.text()).toBe(200);
}

/** The team that the set-up has made. */
async function teamDemo(api: APIRequestContext): Promise<Team> {
  const { teams } = (await (await api.get("/api/v1/teams")).json()) as { teams: Team[] };
  const demo = teams.find(({ name }) => name === "demo");
  if (demo === undefined) throw new Error("the installation has no team demo");
  return demo;
}

async function notebookIn(page: Page, workspaceId: string, name: string): Promise<Notebook> {
  await page.goto(`/workspaces/${workspaceId}`);
  return await Notebook.create(await openLab(page, name));
}

test("what a team borrows goes back with notice when its owner claims it, and the owner gets it", async ({
  browser,
  installation,
}) => {
  const page = await pageOf(browser, installation);
  const api = await signInByApi(installation.portalUrl);
  // Whatever an earlier journey has left would hold a part of the device.
  await stopWorkspaces(api);
  const borrower = await teamDemo(api);
  const made = (await (await api.post("/api/v1/teams", { data: { name: owner } })).json()) as Team;
  const membership = { email: ADMIN, role: "lead" };
  const { members } = await change<{ members: { userId: string }[] }>(
    api,
    "post",
    `/teams/${made.id}/members`,
    membership,
  );
  try {
    await put(api, `/teams/${borrower.id}/quotas/soft`, { guaranteedMilli: 0, limitMilli: 1000 });
    await put(api, `/teams/${made.id}/quotas/soft`, { guaranteedMilli: 500, limitMilli: 500 });
    await put(api, `/teams/${borrower.id}/policy`, { ...POLICY, minRunSeconds: 0, noticeSeconds: NOTICE_SECONDS });
    const [borrowing, claiming] = await Promise.all([
      launchByApi(api, `lent ${run}`, borrower.id),
      launchByApi(api, `claims ${run}`, made.id),
    ]);
    const lent = await notebookIn(page, borrowing.id, `lent ${run}`);
    expect(await lent.run("%gpu attach 1")).toContain("Borrowed: ");
    await lent.run("x = 42");
    const claims = new ApiNotebook(api, claiming.id, "claims.ipynb");
    // Its kernel starts before the time is taken.
    await claims.run("pass");
    const busy = await lent.begin(UNTIL_TOLD);
    const claimedAt = Date.now();
    const claim = claims.run("%gpu attach 0.5");

    // The one who holds it is told: on the pages, and under the cell that runs.
    await page.bringToFront();
    await page.goto(`/workspaces/${borrowing.id}`);
    await expect(
      page
        .getByRole("main")
        .getByText(/taken back in/)
        .first(),
    ).toBeVisible();
    await expect(page.getByRole("link", { name: /^Your GPU: .*soft.*taken back in/ })).toBeVisible();
    await page.goto("/gpus");
    await page.getByRole("button", { name: /^Notices, \d+ unread/ }).click();
    const notices = page.getByRole("dialog", { name: "Notices" });
    await expect(notices).toContainText("Your 1.0 soft will be taken back");
    await expect(notices).toContainText(`Team ${owner} needs what is guaranteed to it.`);
    const said = await lent.outputOf(busy);
    expect(said).toMatch(/GPU: taken back in [\d.]+ s: .*The notebook lives on/);
    expect(said).toContain("saved in time: True");

    // After the notice, and not before, the claimant has it.
    expect(await claim).toContain("Attached 0.5 GPU");
    expect(Date.now() - claimedAt).toBeGreaterThanOrEqual(NOTICE_SECONDS * 1000);
    expect(await lent.run("print(x)")).toContain("42");
    expect(await lent.run("%gpu")).toContain("none attached");
  } finally {
    // Later journeys find the admin in team demo alone.
    await change(api, "delete", `/teams/${made.id}/members/${members[0]?.userId}`);
    await put(api, `/teams/${made.id}/quotas/soft`, { guaranteedMilli: 0, limitMilli: 0 });
    await put(api, `/teams/${borrower.id}/quotas/soft`, { guaranteedMilli: 500, limitMilli: 1000 });
    await put(api, `/teams/${borrower.id}/policy`, POLICY);
    await api.dispose();
    await page.context().close();
  }
});

test("a lease without GPU work is warned, then parked and given back: the notebook lives and finds its array again", async ({
  browser,
  installation,
}) => {
  const page = await pageOf(browser, installation);
  const api = await signInByApi(installation.portalUrl);
  await stopWorkspaces(api);
  const team = await teamDemo(api);
  try {
    await put(api, `/teams/${team.id}/policy`, { ...POLICY, idleSeconds: IDLE_SECONDS });
    const { id } = await launchByApi(api, `idle ${run}`, team.id);
    const notebook = new ApiNotebook(api, id, "idle.ipynb");
    expect(await notebook.run("%gpu attach 0.5")).toContain("Attached 0.5 GPU");
    await notebook.run("import numpy as np; from numba import cuda; x = 42; d = cuda.to_device(np.arange(1000.0))");
    const asleep = notebook.run(`import time; time.sleep(${IDLE_SECONDS + 15})`);

    // The holder is warned on the pages, and under the cell that runs.
    const warning = "Your 0.5 soft does nothing";
    await page.goto("/notices");
    await expect(page.getByRole("main")).toContainText(warning, { timeout: IDLE_SECONDS * 1000 });
    await page.goto("/gpus");
    await page.getByRole("button", { name: /^Notices, \d+ unread/ }).click();
    await expect(page.getByRole("dialog", { name: "Notices" })).toContainText(warning);
    expect(await asleep).toMatch(/GPU: no work for a while, so it is given back in [\d.]+ s\. The notebook lives on/);
    expect(await notebook.run("%gpu")).toContain("none attached");
    const { leases } = (await (await api.get(`/api/v1/leases?which=ended&workspaceId=${id}`)).json()) as {
      leases: { endReason: string; parkedBytes: number }[];
    };
    expect(leases).toMatchObject([{ endReason: "idle" }]);
    expect(leases[0]?.parkedBytes).toBeGreaterThan(0);
    expect(await notebook.run("print(x)")).toContain("42");
    expect(await notebook.run("%gpu attach 0.5")).toContain("Attached 0.5 GPU");
    expect(await notebook.run("print(d.copy_to_host().sum())")).toContain("499500.0");
  } finally {
    await put(api, `/teams/${team.id}/policy`, POLICY);
    await api.dispose();
    await page.context().close();
  }
});
