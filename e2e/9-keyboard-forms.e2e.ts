/** The forms that people fill in now and then, by the keyboard alone; and lists whose address says what is shown of them. */
import { type APIRequestContext, expect, type Locator, type Page } from "@playwright/test";
import type { WorkspaceView } from "#server/contracts/workspace.ts";
import type { SizeList } from "#server/contracts/workspace-size.ts";
import { expectAccessible } from "./fixtures/accessible.ts";
import { change, joinByApi, PASSWORD, signInByApi, stopWorkspaces, teamByName } from "./fixtures/api.ts";
import { Keyboard } from "./fixtures/keyboard.ts";
import { test } from "./fixtures/lane.ts";
import { pageOf, signIn } from "./fixtures/portal.ts";

test.describe.configure({ mode: "serial" });

const run = Date.now().toString(36);
const guest = { email: `reader-${run}@example.test`, name: `Reader ${run}` };
const workspace = `forms ${run}`;
const teams = Array.from({ length: 3 }, (_, n) => `forms-${run}-${n}`);

let page: Page;
let keys: Keyboard;
let api: APIRequestContext;
/** The workspace's page, and its id. */
let at: string;
let id: string;

const button = (name: string | RegExp) => page.getByRole("button", { name, exact: true }).first();
const inDialog = (name: string) => page.getByRole("dialog").getByRole("button", { name, exact: true });
const field = (label: string | RegExp) => page.getByRole("dialog").getByLabel(label);
const closed = async () => await expect(page.getByRole("dialog")).toHaveCount(0);

/** Writes a day and a time into its parts, in the order in which the browser has them. */
async function writeTime(at: Locator, day: string, hour: string): Promise<void> {
  await keys.reach(at);
  const [year = "", month = "", date = ""] = day.split("-");
  await page.keyboard.type(`${month}${date}${year}`);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.type(`${hour}00AM`);
  await expect(at).toHaveValue(`${day}T${hour}:00`);
}

/** Writes a time of day into its parts. */
async function writeClock(at: Locator, typed: string, value: string): Promise<void> {
  await keys.reach(at);
  await page.keyboard.type(typed);
  await expect(at).toHaveValue(value);
}

async function asJson<T>(path: string): Promise<T> {
  return (await (await api.get(`/api/v1${path}`)).json()) as T;
}

test.beforeAll(async ({ browser, installation }) => {
  page = await pageOf(browser, installation);
  keys = new Keyboard(page);
  api = await signInByApi(installation.portalUrl);
  const team = await teamByName(api, "demo");
  await joinByApi(api, team, guest.email, guest.name);
  for (const name of teams) await change(api, "post", "/teams", { name });
  const asked = { name: workspace, image: "cuda-python", teamId: team };
  ({ id } = await change<{ id: string }>(api, "post", "/workspaces", asked));
  at = `/workspaces/${id}`;
});

test.afterAll(async () => {
  await stopWorkspaces(api);
  await change(api, "post", `/workspaces/${id}/stop`).catch(() => undefined);
  await api.dispose();
  await page.context().close();
});

test("a workspace's GPU policy takes memory as its amount", async () => {
  await page.goto(`${at}/settings`);
  const form = page.locator("form").filter({ has: page.getByLabel("Default amount") });
  const amount = form.getByLabel("Default amount");
  await keys.write(amount, "4G");
  await keys.press(form.getByRole("button", { name: "Save" }));
  await expect(page.getByText("The GPU policy was changed.", { exact: false }).first()).toBeVisible();
  await page.reload();
  await expect(amount).toHaveValue("4G");
  await page.goto(at);
  await expect(page.getByText("%gpu attach 4G", { exact: false }).first()).toBeVisible();
});

test("a workspace's idle limit is chosen", async () => {
  await page.goto(`${at}/settings`);
  await keys.select(page.getByLabel("Stop after"), "2 h");
  await keys.press(
    page
      .locator("form")
      .filter({ has: page.getByLabel("Stop after") })
      .getByRole("button", { name: "Save" }),
  );
  await expect(page.getByText("The idle limit was changed.").first()).toBeVisible();
  expect((await asJson<WorkspaceView>(`/workspaces/${id}`)).ownIdleSeconds).toBe(7200);
});

test("a workspace gets a size that is offered, then one of its own", async () => {
  await page.goto(`${at}/settings`);
  const form = page.locator("form").filter({ has: page.getByRole("group", { name: "Size" }) });
  const save = form.getByRole("button", { name: "Save" });
  const saved = page.getByText("The size is saved.", { exact: false }).first();
  const size = async () => (await asJson<WorkspaceView>(`/workspaces/${id}`)).size;
  await keys.choose(form.getByRole("radio", { name: /^Small/ }));
  await keys.press(save);
  await expect(saved).toBeVisible();
  expect(await size()).toMatchObject({ name: "Small", cpuMilli: 1000 });
  // The arrows come by the last size that can be had, whose numbers the fields begin with.
  const { sizes } = await asJson<SizeList>("/workspace-sizes");
  const last = await form.getByRole("radio", { disabled: false }).nth(-2).inputValue();
  await keys.choose(form.getByRole("radio", { name: /^Custom/ }));
  const [cores, memory] = ["Cores", "Memory"].map((name) => form.getByRole("textbox", { name })) as [Locator, Locator];
  await expect(cores).toHaveValue(String((sizes.find(({ name }) => name === last)?.cpuMilli ?? 0) / 1000));
  await keys.write(cores, "half");
  await keys.press(save);
  await expectAccessible(page, "a size that is not a number");
  await keys.write(cores, "0.5");
  await keys.write(memory, "1.5");
  await page.keyboard.press("Enter");
  await expect.poll(size).toMatchObject({ name: null, cpuMilli: 500, memoryBytes: 1.5 * 2 ** 30 });
});

test("the rule for custom sizes is changed", async () => {
  await page.goto("/sizes");
  const [cores, memory] = [page.getByLabel("Cores at most"), page.getByLabel("Memory at most")];
  const policy = async () => (await asJson<SizeList>("/workspace-sizes")).policy;
  const before = await policy();
  await keys.select(page.getByLabel("Who may"), "everybody");
  await keys.write(cores, "6");
  await keys.write(memory, "24");
  await page.keyboard.press("Enter");
  await expect(page.getByText("Who may choose sizes freely is saved.").first()).toBeVisible();
  const changed = { customSizes: "everybody", maxCpuMilli: 6000, maxMemoryBytes: 24 * 2 ** 30 };
  expect(await policy()).toMatchObject(changed);
  await page.reload();
  await expect(cores).toHaveValue("6");
  await change(api, "put", "/workspace-sizes/policy", { ...before, version: (await policy()).version });
});

test("a team's quota gets a calendar, whose entry is refused, made smaller, saved and removed", async () => {
  await page.goto("/teams/demo");
  const edit = button("Edit calendar of soft");
  await keys.press(edit);
  const entries = page.getByRole("dialog").getByRole("list", { name: "Entries" });
  await keys.tick(field(/^Fri/));
  await writeClock(field(/^From/), "0930AM", "09:30");
  await writeClock(field(/^To/), "0600PM", "18:00");
  await keys.write(field(/^Guaranteed/), "5");
  await keys.write(field(/^Limit/), "5");
  await keys.press(inDialog("Add entry"));
  await expect(page.getByRole("dialog").getByText("This cannot be saved")).toBeVisible();
  await expect(page.getByRole("dialog").getByRole("table")).toContainText("demo 1.0");
  await expectAccessible(page, "a calendar that is refused");
  await keys.press(page.getByRole("dialog").getByRole("button", { name: /^Remove Mon to Thu 09:30 to 18:00/ }));
  await expect(entries).toContainText("No entry");
  await keys.write(field(/^Guaranteed/), "0.5");
  await keys.write(field(/^Limit/), "0.25");
  await keys.press(inDialog("Add entry"));
  await expect(page.getByText("The limit is at least the guaranteed amount.")).toBeVisible();
  await expectAccessible(page, "an entry of a calendar that cannot be");
  await keys.write(field(/^Limit/), "1");
  await page.keyboard.press("Enter");
  await expect(entries).toContainText("0.5 guaranteed, limit 1.0");
  await expect(page.getByRole("dialog").getByText("fit the devices at every hour", { exact: false })).toBeVisible();
  await keys.press(inDialog("Save calendar"));
  await closed();
  await expect(edit).toBeFocused();
  const calendar = page.getByRole("region", { name: "Calendar" });
  await expect(calendar.getByText("Mon to Thu 09:30 to 18:00", { exact: false })).toBeVisible();
  await keys.press(edit);
  await keys.press(page.getByRole("dialog").getByRole("button", { name: /^Remove Mon to Thu/ }));
  await keys.press(inDialog("Save calendar"));
  await closed();
  await expect(calendar.getByText("At every hour")).toBeVisible();
});

test("a GPU type takes batch work alone at night, until that is removed", async () => {
  await page.goto("/calendars");
  const edit = button("Edit calendar of soft");
  await keys.press(edit);
  await writeClock(field(/^From/), "1000PM", "22:00");
  await writeClock(field(/^To/), "0600AM", "06:00");
  await keys.select(field(/^Takes only/), "batch");
  await keys.press(inDialog("Add entry"));
  await keys.press(inDialog("Save calendar"));
  await closed();
  const windows = async () => (await asJson<{ windows: unknown[] }>("/gpu-types/soft/windows")).windows;
  // Over midnight: each ends on the day after.
  expect(await windows()).toContainEqual({ fromMinute: 22 * 60, toMinute: 30 * 60, kind: "batch" });
  await expect(page.getByText("batch work only").first()).toBeVisible();
  await keys.press(edit);
  await keys.press(page.getByRole("dialog").getByRole("button", { name: /^Remove Mon to Fri 22:00/ }));
  await keys.press(inDialog("Save calendar"));
  await closed();
  expect(await windows()).toEqual([]);
});

test("GPU memory is reserved for one person, whose reservation is listed and canceled", async () => {
  await page.goto("/teams/demo");
  await keys.press(button("Reserve"));
  const dialog = page.getByRole("dialog");
  const person = dialog.getByLabel("For", { exact: true });
  // The members of the team are read once the dialog is open.
  await expect(person.getByRole("option", { name: "First Admin" })).toHaveCount(1);
  await keys.select(person, "First Admin");
  const [amount, unit] = [field("Amount"), field("In leases of")];
  await keys.write(amount, "7G");
  await keys.write(unit, "2G");
  await writeTime(field(/^From/), "2099-01-05", "10");
  await writeTime(field(/^To/), "2099-01-05", "11");
  await keys.press(inDialog("Reserve"));
  // At its field, and where the guarantees are looked at.
  await expect(page.getByText("7G does not go into leases of 2G without a rest.").first()).toBeVisible();
  await keys.write(amount, "2G");
  await keys.write(field("What for"), "A class");
  await expect(dialog.getByText("Reserved for this person alone, even when idle.")).toBeVisible();
  await expect(dialog.getByText("Nobody who holds a GPU now loses it")).toBeVisible();
  await expectAccessible(page, "a reservation and its effects");
  await keys.press(inDialog("Reserve"));
  await closed();
  const reservations = page.getByRole("region", { name: "Reservations", exact: true });
  const row = reservations.getByRole("row", { name: /A class/ });
  await keys.press(row.getByRole("button", { name: /^Cancel the reservation/ }));
  await keys.press(inDialog("Cancel reservation"));
  await closed();
  await expect(row).toHaveCount(0);
});

test("a size is offered, chosen at a launch by its link, changed and removed", async () => {
  const size = `Keys ${run}`;
  await page.goto("/sizes");
  await keys.press(button("Add size"));
  await keys.write(field("Name"), size);
  await keys.write(field("Cores"), "0.5");
  await keys.write(field("Memory"), "1");
  await keys.press(inDialog("Save size"));
  await closed();
  const row = page.getByRole("row", { name: new RegExp(size) });
  await expect(row).toContainText("0.5");
  await expect(row).toContainText("1.0 GiB");
  await page.goto(`/workspaces/new?${new URLSearchParams({ size })}`);
  await expect(page.getByRole("radio", { name: new RegExp(size) })).toBeChecked();
  await keys.choose(page.getByRole("radio", { name: /^Custom/ }));
  await keys.write(page.getByRole("textbox", { name: "Cores" }), "1");
  await expectAccessible(page, "a launch with a custom size");
  await page.goto("/sizes");
  await keys.press(button(`Edit ${size}`));
  await keys.write(field("Description"), "For keys");
  await keys.press(inDialog("Save size"));
  await closed();
  await expect(row).toContainText("For keys");
  await keys.press(button(`Remove ${size}`));
  await keys.press(page.getByRole("dialog").getByRole("button", { name: /^Remove/ }));
  await closed();
  await expect(row).toHaveCount(0);
});

test("a team's policy is changed, says what it does, and is audited", async () => {
  await page.goto(`/teams/${teams[0]}`);
  await keys.press(button("Edit policy"));
  await keys.write(field("Idle limit of a GPU"), "45m");
  await keys.select(field("Cards"), "Shares inside");
  await keys.press(inDialog("Save policy"));
  await closed();
  const policy = page.getByRole("region", { name: "Policy" });
  await expect(policy.getByText("Shares inside the team")).toBeVisible();
  await expect(policy.getByText("After 45m without GPU work", { exact: false })).toBeVisible();
  await expect(policy.getByText("set for this team")).toHaveCount(2);
  await page.goto(`/audit?of=team&what=${teams[0]}`);
  const edits = page.getByRole("row").filter({ hasText: "team.set-policy" });
  await expect(edits.first()).toContainText(/idle (none → )?45 min/);
});

test("an access token that may only read is made, shown once, does no more than that, and is revoked", async ({
  playwright,
}) => {
  await page.goto("/settings");
  await expect(page.getByText("600 calls a minute at most")).toBeVisible();
  await keys.press(button("New token"));
  const dialog = page.getByRole("dialog");
  await keys.write(field("Name"), `keys ${run}`);
  await keys.tick(dialog.getByRole("checkbox", { name: "Workspaces" }));
  await keys.press(inDialog("Make token"));
  const token = dialog.getByLabel("Token", { exact: true });
  await expect(token).toHaveValue(/^slp_/);
  const authorization = `Bearer ${await token.inputValue()}`;
  await keys.press(inDialog("Done"));
  await closed();
  const baseURL = new URL(page.url()).origin;
  const script = await playwright.request.newContext({ baseURL, extraHTTPHeaders: { authorization } });
  expect((await script.get("/api/v1/audit")).status()).toBe(200);
  const refused = await script.post("/api/v1/teams", { data: { name: "by-token" } });
  expect(refused.status()).toBe(403);
  expect(await refused.text()).toContain('Make one with the scope \\"manage\\"');
  await keys.press(button(`Revoke keys ${run}`));
  await keys.press(inDialog("Revoke token"));
  await closed();
  await expect(button(`Revoke keys ${run}`)).toHaveCount(0);
  expect((await script.get("/api/v1/audit")).status()).toBe(401);
  await script.dispose();
});

test("a password is changed, which signs out everywhere but here", async ({ browser, installation }) => {
  const email = `changes-${run}@example.test`;
  await joinByApi(api, await teamByName(api, "demo"), email, `Changes ${run}`);
  const elsewhere = await pageOf(browser, installation, email);
  const theirs = await (await browser.newContext()).newPage();
  await signIn(theirs, email);
  // As a password manager comes to it.
  await theirs.goto("/.well-known/change-password");
  const own = new Keyboard(theirs);
  const dialog = theirs.getByRole("dialog", { name: "Change password" });
  const [current, chosen, again] = ["Current password", "New password", "New password again"].map((label) =>
    dialog.getByLabel(label, { exact: true }),
  ) as [Locator, Locator, Locator];
  await own.write(current, "not this one");
  await own.write(chosen, "better horse");
  await own.write(again, "better horse");
  await theirs.keyboard.press("Enter");
  await expect(current).toHaveAccessibleDescription("This is not your current password.");
  await expectAccessible(theirs, "a wrong current password");
  // What was typed is still there.
  await own.write(current, PASSWORD);
  await theirs.keyboard.press("Enter");
  await expect(dialog).toHaveCount(0);
  await expect(theirs.getByText("Your password was changed, and 1 other sign-in session ended.").first()).toBeVisible();
  const sessions = theirs.getByRole("table", { name: "Sign-in sessions" });
  await expect(sessions.locator("tbody").getByRole("row")).toHaveCount(1);
  await expect(theirs.getByRole("button", { name: "Notices, 1 unread" })).toBeVisible();
  await elsewhere.goto("/settings");
  await expect(elsewhere).toHaveURL(/sign-in/);
  await signIn(elsewhere, email, "better horse");
  for (const each of [theirs, elsewhere]) await each.context().close();
});

test("notices have a page of their own, where all of them are read", async ({ browser, installation }) => {
  await change(api, "post", `/workspaces/${id}/collaborators`, { person: guest.email, role: "viewer" });
  const theirs = await pageOf(browser, installation, guest.email);
  await theirs.goto("/workspaces");
  const own = new Keyboard(theirs);
  await own.press(theirs.getByRole("button", { name: "Notices, 1 unread" }));
  await own.press(theirs.getByRole("link", { name: "All notices" }));
  await expect(theirs.getByRole("heading", { level: 1, name: "Notices" })).toBeVisible();
  await own.press(theirs.getByRole("link", { name: "Unread", exact: true }));
  await expect(theirs.getByRole("main").getByText(workspace, { exact: false }).first()).toBeVisible();
  await expectAccessible(theirs, "a page of notices");
  await own.press(theirs.getByRole("button", { name: "Mark 1 notice as read" }));
  await expect(theirs.getByText("Nothing is unread")).toBeVisible();
  await expect(theirs.getByRole("button", { name: "Notices", exact: true })).toBeVisible();
  await own.press(theirs.getByRole("link", { name: "All", exact: true }));
  await expect(theirs.getByRole("main").getByText(workspace, { exact: false }).first()).toBeVisible();
  await theirs.context().close();
});

test("what a list is filtered and sorted by stands in its address", async ({ browser, installation }) => {
  await page.goto("/policies");
  const table = page.getByRole("table", { name: "Policies by team" });
  await keys.write(page.getByLabel("Filter teams"), `${run}-`);
  await expect(table.getByRole("row")).toHaveCount(4);
  await keys.press(table.getByRole("button", { name: "Team" }));
  await keys.press(table.getByRole("button", { name: "Team" }));
  await expect(page).toHaveURL(/\?filter-[a-z-]+=\w+-&sort-[a-z-]+=\w+(-down)?$/);
  const shown = () => table.locator("tbody tr td:first-child").allInnerTexts();
  const before = await shown();
  await page.reload();
  expect(await shown()).toEqual(before);
  // Whoever gets the link sees the same.
  const other = await pageOf(browser, installation);
  await other.goto(page.url());
  expect(await other.getByRole("table", { name: "Policies by team" }).locator("tbody tr").count()).toBe(3);
  await other.context().close();
  await keys.write(page.getByLabel("Filter teams"), " ");
  await expect(page).not.toHaveURL(/filter-/);
});
