/**
 * Two teams and one device: what one team does not use is lent, and comes back with notice when its team asks for it.
 * The times are short by the lending team's own policy.
 */
import { type APIRequestContext, expect, type Page } from "@playwright/test";
import { signInByApi, stopWorkspaces } from "./fixtures/api.ts";
import { test } from "./fixtures/lane.ts";
import { Notebook } from "./fixtures/notebook.ts";
import { ADMIN, asAdmin, openLab } from "./fixtures/portal.ts";

/** The shortest that a policy may give. */
const NOTICE_SECONDS = 10;
const run = Date.now().toString(36);
const owner = `owner-${run}`;

/** Work that goes on until its program is told to save. */
const UNTIL_TOLD = [
  "import sluice_gpu, threading",
  "told = threading.Event()",
  "sluice_gpu.on_reclaim(told.set)",
  `print("saved in time:", told.wait(${NOTICE_SECONDS * 3}))`,
].join("\n");

type Team = { id: string; name: string };

/** Launches CUDA Python for a team; returns the workspace's id. */
async function launchFor(api: APIRequestContext, teamId: string, name: string): Promise<string> {
  const made = await api.post("/api/v1/workspaces", { data: { name, image: "cuda-python", teamId } });
  expect(made.status(), await made.text()).toBe(201);
  return ((await made.json()) as { id: string }).id;
}

async function notebookIn(page: Page, workspaceId: string, name: string): Promise<Notebook> {
  await page.goto(`/workspaces/${workspaceId}`);
  return await Notebook.create(await openLab(page, name));
}

test("what a team borrows goes back with notice when its owner claims it, and the owner gets it", async ({
  browser,
  installation,
}) => {
  const page = await asAdmin(await (await browser.newContext()).newPage(), installation);
  const api = await signInByApi(installation.portalUrl);
  const put = async (path: string, data: Record<string, unknown>) => {
    const answer = await api.put(`/api/v1${path}`, { data });
    expect(answer.status(), await answer.text()).toBe(200);
  };
  // Whatever an earlier journey has left would hold a part of the device.
  await stopWorkspaces(api);
  const { teams } = (await (await api.get("/api/v1/teams")).json()) as { teams: Team[] };
  const borrower = teams.find(({ name }) => name === "demo");
  if (borrower === undefined) throw new Error("the installation has no team demo");
  const made = (await (await api.post("/api/v1/teams", { data: { name: owner } })).json()) as Team;
  await api.post(`/api/v1/teams/${made.id}/members`, { data: { email: ADMIN, role: "lead" } });
  const policy = { maxLeaseSeconds: null, idleSeconds: null, coTenancy: "any" };
  try {
    await put(`/teams/${borrower.id}/quotas/soft`, { guaranteedMilli: 0, limitMilli: 1000 });
    await put(`/teams/${made.id}/quotas/soft`, { guaranteedMilli: 500, limitMilli: 500 });
    await put(`/teams/${borrower.id}/policy`, { ...policy, minRunSeconds: 0, noticeSeconds: NOTICE_SECONDS });
    const ids = [
      await launchFor(api, borrower.id, `lent ${run}`),
      await launchFor(api, made.id, `claims ${run}`),
    ] as const;
    const lent = await notebookIn(page, ids[0], `lent ${run}`);
    expect(await lent.run("%gpu attach 1")).toContain("Borrowed: ");
    await lent.run("x = 42");
    const claims = await notebookIn(page, ids[1], `claims ${run}`);
    const busy = await lent.begin(UNTIL_TOLD);
    const claimedAt = Date.now();
    const claim = await claims.begin("%gpu attach 0.5");

    // The one who holds it is told: on the pages, and under the cell that runs.
    await page.bringToFront();
    await page.goto(`/workspaces/${ids[0]}`);
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
    expect(await claims.outputOf(claim)).toContain("Attached 0.5 GPU");
    expect(Date.now() - claimedAt).toBeGreaterThanOrEqual(NOTICE_SECONDS * 1000);
    expect(await lent.run("print(x)")).toContain("42");
    expect(await lent.run("%gpu")).toContain("none attached");
  } finally {
    await put(`/teams/${made.id}/quotas/soft`, { guaranteedMilli: 0, limitMilli: 0 });
    await put(`/teams/${borrower.id}/quotas/soft`, { guaranteedMilli: 500, limitMilli: 1000 });
    await put(`/teams/${borrower.id}/policy`, policy);
    await api.dispose();
  }
});
