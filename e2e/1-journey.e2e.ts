/**
 * The journey that must work, as people take it: set-up, invitation, launch, and a GPU that comes and goes under
 * running notebooks. One installation, real Chromium, real JupyterLab, the software GPU.
 */
import { readFile } from "node:fs/promises";
import { type APIRequestContext, expect, type Page } from "@playwright/test";
import type { LeaseListItem } from "#server/contracts/gpu-server.ts";
import { expectAccessible } from "./fixtures/accessible.ts";
import { ApiNotebook, launchByApi, PASSWORD, signInByApi } from "./fixtures/api.ts";
import { Keyboard } from "./fixtures/keyboard.ts";
import { test } from "./fixtures/lane.ts";
import { Notebook } from "./fixtures/notebook.ts";
import { acceptInvitation, consoleErrors, inviteMember, launchWorkspace, openLab, setUp } from "./fixtures/portal.ts";

test.describe.configure({ mode: "serial" });

const SCIENTIST = "scientist@example.test";
const ADD_ONE = `
import numpy as np
from numba import cuda

@cuda.jit
def add_one(a):
    i = cuda.grid(1)
    if i < a.size:
        a[i] += 1
`.trim();

let admin: Page;
let scientist: Page;
const notebooks: Notebook[] = [];
let first: Notebook;
let scientistApi: APIRequestContext;
let second: ApiNotebook;
let third: Notebook;

test.beforeAll(async ({ browser }) => {
  admin = await (await browser.newContext()).newPage();
  scientist = await (await browser.newContext()).newPage();
});

test.afterAll(async () => {
  for (const page of [admin, scientist]) await page.context().close();
  await scientistApi?.dispose();
});

test("the set-up link is one form and makes the first admin", async ({ installation }) => {
  const keys = new Keyboard(admin);
  await setUp(admin, installation.setupLink, async () => {
    await expect(admin.getByRole("button", { name: "Set up Sluice" })).toBeVisible();
    await expectAccessible(admin, "the set-up form");
    // What is wrong is said where it was typed, and what was right stays.
    await keys.write(admin.getByLabel("Name"), "First Admin");
    await keys.write(admin.getByLabel("E-mail"), "admin@example");
    await keys.write(admin.getByLabel("Password"), PASSWORD);
    await admin.keyboard.press("Enter");
    await expect(admin.getByLabel("E-mail")).toHaveAccessibleDescription(/e-mail/i);
    await expect(admin.getByLabel("Name")).toHaveValue("First Admin");
    await expectAccessible(admin, "the set-up form with an address that is none");
  });
  await expect(admin.getByRole("heading", { level: 1 })).toBeVisible();
});

test("the admin invites a data scientist by a link", async () => {
  const link = await inviteMember(admin, "demo", SCIENTIST);
  await acceptInvitation(scientist, link, "Data Scientist", async () => {
    await expect(scientist.getByRole("button", { name: "Accept invitation" })).toBeVisible();
    await expectAccessible(scientist, "the invitation");
  });
  await expect(scientist).toHaveURL(/\/workspaces/);
});

test("the admin opens a window as the sample user and stays signed in", async () => {
  await admin.goto("/people");
  const [sample] = await Promise.all([
    admin.context().waitForEvent("page"),
    admin.getByRole("button", { name: "Open as a sample user" }).click(),
  ]);
  await expect(sample).toHaveURL(/^http:\/\/sample\.localhost:\d+\/workspaces$/);
  await expect(sample.getByRole("heading", { level: 1 })).toHaveText("Workspaces");
  await expect(sample.getByRole("button", { name: "Sample user" })).toBeVisible();
  await expect(sample.getByRole("link", { name: "Launch", exact: true })).toBeVisible();
  await expect(sample.getByRole("link", { name: "People" })).toHaveCount(0);
  await sample.close();
  await admin.goto("/people");
  await expect(admin.getByRole("heading", { level: 1 })).toHaveText("People");
});

test("the data scientist launches CUDA Python, watches its steps and opens JupyterLab on its own hostname", async () => {
  await launchWorkspace(scientist, "first");
  const steps = scientist.getByRole("list", { name: "Steps of the start" }).getByRole("listitem");
  expect(await steps.count()).toBeGreaterThanOrEqual(3);
  for (const step of await steps.all()) await expect(step).toContainText(/, done/);
  await expect(steps.filter({ hasText: /cuda-python with Python 3/ })).toHaveCount(1);
  const page = scientist.url();
  await scientist.goto(`${page}/log`);
  await expect(scientist.getByRole("log").getByRole("listitem").filter({ hasText: "The sandbox runs" })).toHaveCount(1);
  await scientist.goto(page);
  const errors = consoleErrors(scientist.context());
  const lab = await openLab(scientist, "first");
  expect(new URL(lab.url()).hostname).toMatch(/^ws-[a-z2-7]{26}\.localhost$/);
  first = await Notebook.create(lab);
  notebooks.push(first);
  expect(errors).toEqual([]);
});

test("%gpu shows nothing attached and the team's quota", async () => {
  const text = await first.run("%gpu");
  expect(text).toContain("GPU     none attached.  Borrow one: %gpu attach 0.5");
  expect(text).toContain("Team    demo: 0.0 of 1.0 soft in use (0.5 guaranteed)");
});

test("without a lease a CUDA program fails with the sentence that names %gpu attach", async () => {
  await first.run(ADD_ONE);
  const text = await first.run("add_one[1, 32](np.zeros(8, np.float32))");
  expect(text).toContain("NoGpuAttached: this notebook has no GPU. Run %gpu attach 0.5, then this cell again.");
  expect(text).toContain("inside libraries folded. Show all: %tb");
});

/** The examples whose code, `%gpu` left out, gets as far as this cell without a GPU. */
const FIRST_GPU_CELLS = [
  ["kmeans-digits", "run"],
  ["mandelbrot", "draw"],
] as const;

for (const [name, firstGpuCell] of FIRST_GPU_CELLS) {
  test(`the example ${name} without a lease fails at its first GPU cell and says what to run`, async () => {
    const file = new URL(`../examples/${name}.ipynb`, import.meta.url);
    const { cells } = JSON.parse(await readFile(file, "utf8")) as {
      cells: { id: string; cell_type: string; source: string[] }[];
    };
    const code = cells.filter((cell) => cell.cell_type === "code" && !cell.source.join("").startsWith("%gpu"));
    for (const cell of code) {
      const text = await first.run(cell.source.join(""));
      if (cell.id === firstGpuCell) {
        expect(text).toContain("NoGpuAttached: this notebook has no GPU. Run %gpu attach 0.5, then this cell again.");
        return;
      }
      expect(text, cell.id).not.toContain("Error");
    }
    throw new Error(`${name} has no cell ${firstGpuCell}`);
  });
}

test("after %gpu attach 0.5 the same cell runs, and %gpu shows memory and time", async () => {
  expect(await first.run("%gpu attach 0.5")).toMatch(
    /Attached 0\.5 GPU \(soft-0 on local, 4\.0 GiB\) in [\d.]+ m?s\.\nEnds in \d[^\n]* \(time limit\)/,
  );
  expect(await first.run("a = np.zeros(8, np.float32); add_one[1, 32](a); print(a.tolist())")).toContain(
    "[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]",
  );
  expect(await first.run("x = 42; d = cuda.to_device(np.arange(1000, dtype=np.float32))")).toBe("");
  const text = await first.run("%gpu");
  expect(text).toMatch(/GPU +0\.5 of soft-0 on local/);
  expect(text).toMatch(/Memory +\d/);
  expect(text).toMatch(/Compute +\d+ % of your half/);
  expect(text).toMatch(/Ends +in \d+ (min|h).*\(time limit;.*\(idle limit\)/);
});

test("a program sees half of the device's memory, and more than that is a real out-of-memory error", async () => {
  expect(await first.run("print(cuda.current_context().get_memory_info().total >> 30)")).toContain("4");
  const text = await first.run(
    `try:\n    cuda.device_array(5 << 30, np.uint8)\nexcept Exception as error:\n    print("caught", error)`,
  );
  expect(text).toMatch(/caught .*OUT_OF_MEMORY/);
  expect(await first.run("b = d.copy_to_host(); print(b.sum())")).toContain("499500.0");
});

test("large copies go through memory that the workspace shares with the GPU server of its machine", async () => {
  const text = await first.run(
    `e = np.arange(3 << 20, dtype=np.float32)\nprint((cuda.to_device(e).copy_to_host() == e).all(), "memfd:sluice-lane" in open("/proc/self/maps").read())`,
  );
  expect(text).toContain("True True");
});

test("a script started from the notebook uses the same lease", async () => {
  await first.run(
    `%%writefile child.py\nimport numpy as np\nfrom numba import cuda\nprint("total", cuda.current_context().get_memory_info().total >> 30)\nprint("sum", cuda.to_device(np.ones(10)).copy_to_host().sum())`,
  );
  const text = await first.run("!python child.py");
  expect(text).toContain("total 4");
  expect(text).toContain("sum 10.0");
  expect(await first.run("%gpu")).toContain("Team demo: 0.5 of 1.0 soft in use");
});

test("a second workspace attaches, in a third attach waits with its reason and place", async ({ installation }) => {
  scientistApi = await signInByApi(installation.portalUrl, SCIENTIST);
  const [{ id }] = await Promise.all([launchByApi(scientistApi, "second"), launchByApi(scientistApi, "third")]);
  second = new ApiNotebook(scientistApi, id, "second.ipynb");
  await scientist.goto("/workspaces");
  third = await Notebook.create(await openLab(scientist, "third"));
  // The pool page is open before: what follows appears there by itself.
  await admin.goto("/pool");
  await expect(admin.getByRole("button", { name: /End lease/ })).toHaveCount(1);
  await admin.evaluate(() => document.documentElement.setAttribute("data-opened-before", "yes"));
  expect(await second.run("%gpu attach 0.5")).toContain("Attached 0.5 GPU");
  const waiting = await third.begin("%gpu attach 0.5");
  await expect(waiting).toContainText("Queued  1st of 1 for 0.5 soft.");
  await expect(waiting).toContainText("team demo is at its limit (1.0 of 1.0 soft)");
});

test("the pool page shows both leases on the device, without a reload", async () => {
  await expect(admin.getByText("soft-0").first()).toBeVisible();
  await expect(admin.getByRole("button", { name: /End lease/ })).toHaveCount(2);
  await expect(admin.locator("html")).toHaveAttribute("data-opened-before", "yes");
});

test("detach parks a live array, the third is granted within a second, and the array is back after the next attach", async () => {
  const waiting = third.panel.locator(".jp-CodeCell").nth((await third.panel.locator(".jp-CodeCell").count()) - 2);
  const text = await first.run("%gpu detach");
  expect(text).toMatch(/parked/i);
  await expect(waiting).toContainText("Attached 0.5 GPU");
  const [[released], [granted]] = [await leasesOf("first", "ended"), await leasesOf("third", "live")];
  expect(Date.parse(granted?.grantedAt ?? "") - Date.parse(released?.endedAt ?? "")).toBeLessThan(1_000);
  expect(await first.run("print(x)")).toContain("42");
  expect(await second.run("%gpu detach")).not.toContain("Error");
  expect(await first.run("%gpu attach 0.5")).toContain("Attached 0.5 GPU");
  expect(await first.run("print(d.copy_to_host().sum())")).toContain("499500.0");
});

test("%%gpu runs one cell with a lease and gives it back, also when the cell raises", async () => {
  expect(await third.run("%gpu detach")).not.toContain("Error");
  await second.run(ADD_ONE);
  const ran = await second.run("%%gpu 0.5\na = np.zeros(4, np.float32); add_one[1, 4](a); print(a.tolist())");
  expect(ran).toContain("[1.0, 1.0, 1.0, 1.0]");
  expect(await second.run("%gpu")).toContain("none attached");
  expect(await second.run("%%gpu 0.5\nraise ValueError('on purpose')")).toContain("on purpose");
  expect(await second.run("%gpu")).toContain("none attached");
});

test("the admin ends a lease: a clear error, the notebook lives, and the same dispatcher works after the next attach", async () => {
  await admin.goto("/pool");
  await admin
    .getByRole("button", { name: /End lease/ })
    .first()
    .click();
  await expect(admin.getByRole("dialog").getByRole("textbox")).toBeVisible();
  await expectAccessible(admin, "the dialog to end a lease");
  await admin
    .getByRole("dialog")
    .getByRole("button", { name: /End lease/ })
    .click();
  await expect(admin.getByRole("button", { name: /End lease/ })).toHaveCount(0);
  const text = await first.run("a = np.zeros(8, np.float32); add_one[1, 32](a)");
  expect(text).toMatch(/ended by an admin/i);
  expect(await first.run("print(x)")).toContain("42");
  expect(await first.run("%gpu attach 0.5")).toContain("Attached 0.5 GPU");
  expect(await first.run("a = np.zeros(8, np.float32); add_one[1, 32](a); print(a.sum())")).toContain("8.0");
  expect(await first.run("del d; import gc; gc.collect(); print('fine')")).toContain("fine");
  await first.run("%gpu detach");
});

/** Sets on its page how a workspace comes to a GPU, and how much it takes where no amount is given. */
async function choosePolicy(workspace: string, policy: string, amount: string): Promise<void> {
  await scientist.goto("/workspaces");
  await scientist.getByRole("link", { name: workspace, exact: true }).click();
  await scientist.getByRole("link", { name: "Settings", exact: true }).click();
  const select = scientist.getByRole("combobox", { name: "GPU policy" });
  await select.selectOption(policy);
  await scientist.getByLabel("Default amount").fill(amount);
  const form = scientist.locator("form").filter({ has: select });
  await form.getByRole("button", { name: "Save" }).click();
  await expect(scientist.getByText("The GPU policy was changed.").first()).toBeVisible();
}

test("the GPU policy: on first use GPU work attaches by itself, never means never", async () => {
  await choosePolicy("second", "first-use", "0.25");
  const ran = await second.run("a = np.zeros(4, np.float32); add_one[1, 4](a); print(a.tolist())");
  expect(ran).toMatch(/Attached a GPU by itself \(soft-0 on local\)/);
  expect(ran).toContain("[1.0, 1.0, 1.0, 1.0]");
  expect(await second.run("%gpu")).toMatch(/GPU +0\.25 of soft-0 on local/);
  await second.run("%gpu detach");
  await choosePolicy("second", "never", "0.25");
  expect(await second.run("%gpu attach")).toContain("its GPU policy is never");
});

test("the panel in JupyterLab borrows by the keyboard alone, gives back, and lists what was borrowed", async () => {
  const panel = first.page.getByRole("region", { name: "GPU", exact: true });
  // From anywhere: in a cell Tab indents.
  const open = async () => {
    await first.page.bringToFront();
    await first.page.keyboard.press("ControlOrMeta+Shift+C");
    await first.page.keyboard.type("Borrow a GPU");
    await first.page.keyboard.press("Enter");
    await expect(panel.locator(":focus")).toBeVisible();
  };
  await open();
  const amount = panel.getByRole("slider", { name: /^Amount/ });
  await expect(amount).toBeFocused();
  await expect(first.page).toHaveTitle(/^first: /);
  await expect(panel.getByRole("button", { name: "Detach" })).toBeDisabled();
  await expect(amount).toHaveAttribute("aria-valuetext", "0.5 GPU");
  await first.page.keyboard.press("ArrowLeft");
  await expect(amount).toHaveAttribute("aria-valuetext", "0.25 GPU");
  const keys = new Keyboard(first.page);
  await keys.press(panel.getByRole("button", { name: "Attach" }));
  const said = panel.getByRole("log");
  await expect(said).toContainText("Attached 0.25 GPU");
  expect(await first.run("%gpu")).toMatch(/GPU +0\.25 of soft-0 on local/);
  await expect(panel.locator("p[role=status]")).toContainText("0.25");
  await expect(panel.getByRole("meter", { name: "GPU memory" })).toBeVisible();
  await expect(panel.getByRole("button", { name: "Attach" })).toBeDisabled();
  await open();
  await keys.press(panel.getByRole("button", { name: "Detach" }));
  await expect(said).toContainText("Gave back 0.25 GPU");
  await expect(panel.getByRole("listitem").first()).toContainText(/0\.25.* for \d+ s/);
  // What the workspace's policy says is where the slider begins, and what is typed.
  await choosePolicy("first", "ask", "2G");
  await open();
  await expect(amount).toHaveAttribute("aria-valuetext", "2G (0.25 GPU)");
  await keys.press(panel.getByRole("button", { name: "Attach" }));
  await expect(said).toContainText("Attached 0.25 GPU");
  expect(await first.run("!sluice gpu")).toMatch(/Memory +.* of 2\.0 GiB/);
  await first.run("%gpu detach");
  expect(await first.run("!sluice gpu")).toContain("Borrow one: sluice run --gpu 2G -- COMMAND");
  await choosePolicy("first", "ask", "0.5");
});

test("the menu Sluice in JupyterLab leads to the portal", async () => {
  await first.page.getByRole("menuitem", { name: "Sluice", exact: true }).click();
  const popup = first.page.waitForEvent("popup");
  await first.page.getByRole("menuitem", { name: "Stop workspace…" }).click();
  await expect(await popup).toHaveURL(/\/workspaces\/ws-/);
  await (await popup).close();
  await first.page.getByRole("menuitem", { name: "File", exact: true }).click();
  await expect(first.page.getByRole("menuitem", { name: "Sign out…" })).toBeVisible();
  await expect(first.page.getByRole("menuitem", { name: /^(Log Out|Shut Down)$/ })).toHaveCount(0);
  await first.page.keyboard.press("Escape");
});

test("the tour: two notebooks share a GPU, and the first keeps its variables", async () => {
  await scientist.goto("/tour");
  const step = (number: number) => scientist.getByRole("region", { name: new RegExp(`^Step ${number}:`) });
  await scientist.getByRole("button", { name: "Play the tour" }).click();
  await expect(step(2)).toContainText("Attached 0.5 GPU", { timeout: 90_000 });
  await expect(scientist.getByRole("complementary", { name: "The GPU" })).toContainText("first.ipynb");
  await expect(step(3).getByRole("img")).toBeVisible({ timeout: 60_000 });
  await expect(step(4)).toContainText(/Queued +1st of 1/);
  await expect(step(4)).toContainText("first.ipynb");
  await expect(step(4)).toContainText(/Attached 1 GPU/);
  await expect(step(6)).toContainText("x is still 42");
  await expect(scientist.getByRole("button", { name: "Play it again" })).toBeVisible();
  await expectAccessible(scientist, "the tour that has been played");
  await expect.poll(() => leasesOf("tour", "live")).toEqual([]);
});

test("stopping a workspace ends its lease; packages installed by %pip and files stay for the next start", async () => {
  expect(await first.run("%pip install -q tomli-w\nimport tomli_w; print(tomli_w.__name__)", 120_000)).toContain(
    "tomli_w",
  );
  expect(await first.run("%gpu attach 0.5")).toContain("Attached 0.5 GPU");
  expect(await leasesOf("first", "live")).toHaveLength(1);
  await scientist.goto("/workspaces");
  await scientist.getByRole("link", { name: "first", exact: true }).click();
  // The list has this menu as well, and loses it when the workspace's page comes.
  await expect(scientist).toHaveURL(/\/workspaces\/ws-/);
  await scientist.getByRole("button", { name: "More for first" }).click();
  await scientist.getByRole("menuitem", { name: "Stop" }).click();
  await scientist.getByRole("button", { name: "Stop workspace" }).click();
  await expect(scientist.getByRole("button", { name: "Start first" })).toBeVisible({ timeout: 60_000 });
  await expect.poll(() => leasesOf("first", "live")).toEqual([]);
  const [last] = await leasesOf("first", "ended");
  expect(last?.endReason).toBe("workspace stopped");
  await admin.goto("/pool");
  await expect(admin.getByText("soft-0").first()).toBeVisible();
  await expect(admin.getByRole("button", { name: /End lease/ })).toHaveCount(0);
  await scientist.getByRole("button", { name: "Start first" }).click();
  const lab = await openLab(scientist, "first");
  const again = await Notebook.create(lab);
  expect(await again.run("import tomli_w, os; print(tomli_w.__name__, os.path.exists('child.py'))")).toContain(
    "tomli_w True",
  );
});

test("audit shows who did what", async () => {
  await admin.goto("/audit");
  const table = admin.getByRole("table");
  for (const action of ["workspace.create", "workspace.stop", "lease.end", "user.invite"]) {
    await expect(table.getByText(action).first()).toBeVisible();
  }
  // Where it came from: this machine.
  await expect(table.getByText(/127\.0\.0\.1|::1/).first()).toBeVisible();
  await admin.getByLabel("Who").fill("nobody of this name");
  await admin.getByRole("button", { name: "Show" }).click();
  await expect(admin.getByText("Nothing of this kind")).toBeVisible();
  await admin.getByLabel("Who").fill("First Admin");
  await admin.getByRole("button", { name: "Show" }).click();
  await expect(table.getByText("user.invite").first()).toBeVisible();
  const [file] = await Promise.all([
    admin.waitForEvent("download"),
    admin.getByRole("link", { name: "Download as CSV" }).click(),
  ]);
  const lines = (await readFile(await file.path(), "utf8")).split("\r\n");
  expect(lines[0]).toMatch(/^\uFEFFseq,at,who/);
  expect(lines.slice(1, -1).every((line) => line.includes("First Admin"))).toBe(true);
});

/** The leases of a workspace, the latest first. */
async function leasesOf(workspaceName: string, which: "live" | "ended"): Promise<LeaseListItem[]> {
  const answer = await admin.request.get(`/api/v1/leases?which=${which}`);
  const { leases } = (await answer.json()) as { leases: LeaseListItem[] };
  return leases.filter((lease) => lease.workspaceName === workspaceName);
}
