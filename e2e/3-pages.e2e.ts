/** Every page, in light and dark, narrow and wide: nothing for axe to find, nothing that overflows or moves while it comes, no script and no stream refused. */
import { expect, type Page } from "@playwright/test";
import { routes } from "#scripts/pictures/pages.ts";
import { expectAccessible } from "./fixtures/accessible.ts";
import { ADMIN, change, launchByApi, signInByApi, teamByName, versionByName, type Workspace } from "./fixtures/api.ts";
import type { Installation } from "./fixtures/installation.ts";
import { test } from "./fixtures/lane.ts";
import { expectSteady, expectToFit } from "./fixtures/layout.ts";
import { pageOf, signIn } from "./fixtures/portal.ts";

let page: Page;
const refused: string[] = [];

declare global {
  /** The live streams that a tab holds open. */
  var openStreams: Set<EventSource>;
}

test.beforeAll(async ({ browser, installation }) => {
  page = await pageOf(browser, installation);
  page.on("response", (response) => {
    if (new URL(response.url()).pathname === "/api/v1/live" && !response.ok())
      refused.push(`${response.status()} for ${response.url()} on ${page.url()}`);
  });
  watch(page);
});

test.afterAll(async () => {
  await page.context().close();
});

/**
 * The invitation is looked at where somebody accepts it (1-journey), a link for a new password where somebody uses it
 * (9-keyboard), a shared workspace as its stranger (8-roles).
 */
const OTHERWISE = ["/sign-in", "/setup", "/invite/[code]", "/password/[code]", "/shared/[id]"];
const PAGES = [...routes().filter((route) => !OTHERWISE.includes(route)), "/usage?by=person", "/no-such-page"];

/** Where there is something to see on the page of a route. */
async function addressOf(route: string, installation: Installation): Promise<string> {
  if (route.startsWith("/workspaces/[id]")) return route.replace("[id]", (await aWorkspace(installation)).id);
  if (route === "/environments/[id]") return `/environments/${await versionByName(page.request, "cuda-python")}`;
  return route.replace("/teams/[name]", "/teams/demo");
}

const ONE_NONCE = /^'self' 'nonce-[\w+/=]{20,}' /;

/** What scripts the header lets in: none that stand in the page without its nonce. */
function scriptsOf(policy = ""): string {
  const rules = policy.split("; ").find((rule) => rule.startsWith("script-src ")) ?? "";
  expect(rules).not.toContain("unsafe-");
  return rules.replace("script-src ", "");
}

/** Keeps what the policy stopped, and where the page differs from what the server sent. */
function watch(at: Page): void {
  at.on("console", (message) => {
    if (message.type() === "error" && /Content Security Policy|Hydration/i.test(message.text()))
      refused.push(message.text());
  });
}

async function check(at: Page, address: string): Promise<void> {
  for (const width of [390, 1440]) {
    const where = `${address} ${width}`;
    await at.setViewportSize({ width, height: 900 });
    const answer = await at.goto(address);
    expect(scriptsOf(answer?.headers()["content-security-policy"]), where).toMatch(ONE_NONCE);
    expect(await answer?.text(), `${where}: the title is not in the head`).toMatch(/<title>[^<]+<\/title>.*<\/head>/s);
    await expect(at.getByRole("heading", { level: 1 })).toHaveCount(1);
    await expectSteady(at, where);
    await expectAccessible(at, where);
    await expectToFit(at, where);
  }
  await at.setViewportSize({ width: 2560, height: 1440 });
  await expectToFit(at, `${address} 2560`);
  await at.setViewportSize({ width: 1440, height: 900 });
}

for (const route of PAGES) {
  test(`${route} is accessible and fits`, async ({ installation }) => {
    await check(page, await addressOf(route, installation));
  });
}

test("what nobody has to sign in for, and what is no page, lets in no other script either", async ({
  browser,
  installation,
}) => {
  const anonymous = await (await browser.newContext()).newPage();
  watch(anonymous);
  const setup = new URL(installation.setupLink);
  for (const address of [
    "/sign-in",
    `${setup.pathname}${setup.search}`,
    "/invite/gone",
    "/password/gone",
    "/workspaces",
  ]) {
    const answer = await anonymous.goto(address);
    expect(scriptsOf(answer?.headers()["content-security-policy"]), address).toMatch(ONE_NONCE);
    await expect(anonymous.getByRole("heading", { level: 1 })).toHaveCount(1);
  }
  await anonymous.context().close();
  for (const address of ["/shared/ws-gone", "/no-such-page.txt", "/icon-of-nothing.png"]) {
    const answer = await page.goto(address);
    expect(scriptsOf(answer?.headers()["content-security-policy"]), address).toMatch(ONE_NONCE);
  }
  const unknown = await page.request.get("/api/v1/no-such-path");
  expect(unknown.status()).toBe(404);
  expect(unknown.headers()["content-security-policy"]).toMatch(/^default-src 'none';/);
  expect(await unknown.json()).toMatchObject({ error: { code: "not-found" } });
});

test("use is asked for by hours up to now, and by days again once a day is chosen", async () => {
  await page.goto("/usage");
  await page.getByRole("link", { name: "1 h, last hour" }).click();
  await expect(page).toHaveURL(/last=1(&|$)/);
  await expect(
    page.getByText(/GPUs on average, \d{4}-\d\d-\d\d \d\d:\d\d to \d{4}-\d\d-\d\d \d\d:\d\d UTC/),
  ).toBeVisible();
  await page.getByLabel("By", { exact: true }).selectOption("type");
  await page.getByRole("button", { name: "Show" }).click();
  await expect(page).toHaveURL(/last=1&.*by=type/);
  // Another day than stands there: a field that keeps its value has not changed. Until the page listens, nobody hears it.
  const from = new Date(Date.now() - 3 * 86_400_000).toISOString().slice(0, 10);
  await expect(async () => {
    await page.getByLabel("From (UTC)").fill(from);
    await page.getByRole("button", { name: "Show" }).click();
    await expect(page).toHaveURL(new RegExp(`from=${from}.*by=type`));
    await expect(page).not.toHaveURL(/last=/, { timeout: 1000 });
  }).toPass();
});

test("on a narrow axis no label of the time is cut off", async () => {
  await page.setViewportSize({ width: 390, height: 900 });
  const day = (before: number) => new Date(Date.now() - before * 86_400_000).toISOString().slice(0, 10);
  for (const days of [0, 1, 6, 13, 30, 89]) {
    await page.goto(`/usage?from=${day(days)}&to=${day(0)}`);
    await expect(page.getByRole("figure").first()).toBeVisible();
    const cut = await page.getByRole("figure").evaluateAll((figures) =>
      figures.flatMap((figure) =>
        [...figure.querySelectorAll("[aria-hidden] > span")].flatMap((label) => {
          const [own, axis] = [label.getBoundingClientRect(), label.parentElement?.getBoundingClientRect()];
          const fits = axis !== undefined && own.left >= axis.left - 0.5 && own.right <= axis.right + 0.5;
          return fits ? [] : [label.textContent];
        }),
      ),
    );
    expect(cut, `${days} days`).toEqual([]);
  }
  await page.setViewportSize({ width: 1440, height: 900 });
});

test("what is inside an environment is told with its licences, and a retired one is not offered", async () => {
  await page.goto("/environments");
  await page.getByRole("link", { name: "CUDA Python" }).click();
  const row = page.getByRole("row").filter({ has: page.getByRole("cell", { name: "numpy", exact: true }) });
  await expect(row).toContainText("BSD");
  await expectAccessible(page, "what is inside CUDA Python");
  await page.goto("/environments");
  await page.getByRole("button", { name: "Retire CuPy" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Retire environment" }).click();
  const again = page.getByRole("button", { name: "Approve CuPy again" });
  await expect(again).toBeVisible();
  await page.goto("/workspaces/new");
  await expect(page.getByRole("radio", { name: /CUDA Python/ })).toBeVisible();
  await expect(page.getByRole("radio", { name: /CuPy/ })).toHaveCount(0);
  await page.goto("/environments");
  await again.click();
  await page.getByRole("dialog").getByRole("button", { name: "Approve environment" }).click();
  await expect(page.getByRole("button", { name: "Retire CuPy" })).toBeVisible();
});

test("a server is given its zone", async () => {
  await page.goto("/pool");
  await page.getByRole("button", { name: "More for local" }).click();
  await page.getByRole("menuitem", { name: "Set zone" }).click();
  await page.getByRole("textbox", { name: "Zone" }).fill("rack-7");
  await page.getByRole("button", { name: "Save zone" }).click();
  await expect(page.getByText("zone rack-7", { exact: false }).first()).toBeVisible();
});

test("a device is listed as what an admin says it is", async () => {
  await page.goto("/pool");
  const device = page.getByRole("listitem").filter({ has: page.getByRole("heading", { name: /^soft-0/ }) });
  for (const [kind, other] of [
    ["passthrough", "shared card"],
    ["shared card", "passthrough"],
  ] as const) {
    await page.getByRole("button", { name: "More for soft-0" }).click();
    await page.getByRole("menuitem", { name: "Set kind" }).click();
    const dialog = page.getByRole("dialog");
    await expect(dialog.getByRole("radio", { name: other })).toBeChecked();
    await dialog.getByRole("radio", { name: kind }).check();
    await dialog.getByRole("button", { name: "Save kind" }).click();
    await expect(dialog).toHaveCount(0);
    await expect(device.getByText(kind, { exact: true })).toBeVisible();
  }
});

test("the policies of all teams stand side by side and are edited there", async () => {
  await page.goto("/policies");
  await page.getByRole("button", { name: "Edit policy of demo" }).click();
  const dialog = page.getByRole("dialog");
  const before = await dialog.getByLabel("Longest lease").inputValue();
  await dialog.getByLabel("Longest lease").fill("7h");
  await dialog.getByRole("button", { name: "Save policy" }).click();
  await expect(dialog).toHaveCount(0);
  const cell = page.getByRole("row", { name: /demo/ }).getByRole("cell", { name: "7h (set for this team)" });
  await expect(cell).toBeVisible();
  await page.getByRole("button", { name: "Edit policy of demo" }).click();
  await dialog.getByLabel("Longest lease").fill(before);
  await dialog.getByRole("button", { name: "Save policy" }).click();
  await expect(dialog).toHaveCount(0);
  await expect(cell).toHaveCount(0);
});

test("what did nothing is told in hours and money, and as a file", async () => {
  await page.goto("/gpu-audit");
  await expect(page.getByText("Held idle", { exact: true })).toBeVisible();
  await page.getByRole("link", { name: "by person" }).click();
  await expect(page).toHaveURL(/by=person/);
  const file = await page.getByRole("link", { name: "Download as CSV" }).getAttribute("href");
  const answer = await page.request.get(file ?? "");
  expect(await answer.text()).toMatch(/^\uFEFFperson,id,team,held GPU-hours,idle GPU-hours,/);
});

test("what works here is found from one's GPUs", async () => {
  await page.goto("/gpus");
  await page.getByRole("link", { name: "Works here?" }).click();
  const row = page.getByRole("row").filter({ hasText: "PyTorch" });
  await expect(row).toContainText("its own kernels need a real GPU");
  await page.getByLabel("Filter packages").fill("jax");
  // Each of its versions that has been tried.
  const versions = page.getByRole("row").filter({ hasText: "JAX" });
  await expect(versions).toContainText(Array<RegExp>(3).fill(/\d+ of \d+ tests/));
  await expect(row).toHaveCount(0);
});

test("more tabs are open than a browser has connections to a host, and one seen again has caught up", async () => {
  const see = (tab: Page, state: "visible" | "hidden") =>
    tab.evaluate((visibilityState) => {
      Object.defineProperty(document, "visibilityState", { value: visibilityState, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, state);
  // A tab that nobody sees has its timers once a second.
  const follows = async (tab: Page, streams: number) =>
    await tab.waitForFunction((count) => openStreams.size === count, streams, { polling: 200 });
  const open = async () => {
    const tab = await page.context().newPage();
    await tab.addInitScript(() => {
      globalThis.openStreams = new Set();
      globalThis.EventSource = class extends EventSource {
        constructor(...source: ConstructorParameters<typeof EventSource>) {
          super(...source);
          openStreams.add(this);
        }
        override close(): void {
          super.close();
          openStreams.delete(this);
        }
      };
    });
    await tab.goto("/sizes");
    await expect(tab.getByRole("heading", { level: 1 })).toBeVisible();
    await follows(tab, 1);
    // A browser under test shows every tab; a person's shows one.
    await see(tab, "hidden");
    return tab;
  };
  const tabs: Page[] = [];
  // A host has six connections. Four tabs and `page` leave one of them until the four have closed their streams.
  for (let round = 0; round < 2; round++) {
    const fresh: Page[] = [];
    while (fresh.length < 4) fresh.push(await open());
    for (const tab of fresh) await follows(tab, 0);
    tabs.push(...fresh);
  }
  const [first, ...others] = tabs as [Page, ...Page[]];
  const status = await page.evaluate(async () => {
    const size = { name: "Unseen", cpuMilli: 1000, memoryBytes: 2 ** 30 };
    const body = JSON.stringify(size);
    const headers = { "content-type": "application/json" };
    return (await fetch("/api/v1/workspace-sizes", { method: "POST", headers, body })).status;
  });
  expect(status).toBe(201);
  const row = first.getByRole("row").filter({ hasText: "Unseen" });
  await expect(row).toHaveCount(0);
  await see(first, "visible");
  await expect(row).toHaveCount(1);
  await first.getByRole("button", { name: "Remove Unseen" }).click();
  await first.getByRole("dialog").getByRole("button", { name: "Remove size" }).click();
  await expect(row).toHaveCount(0);
  for (const tab of [first, ...others]) await tab.close();
});

test("a team is archived when nobody works in it, keeps its name, and is brought back", async () => {
  await page.goto("/teams");
  await page.getByRole("button", { name: "New team" }).click();
  await page.getByLabel("Name").fill("short-lived");
  await page.getByRole("button", { name: "Make team" }).click();
  await expect(page.getByRole("heading", { name: "Team short-lived" })).toBeVisible();
  await page.getByRole("button", { name: "Archive" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText("its costs and the audit stay under its name");
  await dialog.getByRole("button", { name: "Archive" }).click();
  const archived = page.getByRole("region", { name: "Archived" });
  await expect(archived.getByRole("row").filter({ hasText: "short-lived" })).toBeVisible();
  await expectAccessible(page, "the teams with an archived one");
  await page.getByRole("button", { name: "New team" }).click();
  await dialog.getByLabel("Name").fill("short-lived");
  await dialog.getByRole("button", { name: "Make team" }).click();
  await expect(dialog.getByText("its accounts stay under that name", { exact: false })).toBeVisible();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await archived.getByRole("button", { name: "Bring back short-lived" }).click();
  await expect(archived).toHaveCount(0);
  await expect(page.getByRole("link", { name: "short-lived" })).toBeVisible();
});

test("a team with a calendar and a reservation is accessible and fits", async ({ installation }) => {
  const api = await signInByApi(installation.portalUrl);
  const team = await teamByName(api, "demo");
  const hoursOf = (day: number) => ({ fromMinute: (day * 24 + 8) * 60, toMinute: (day * 24 + 20) * 60 });
  const windows = [0, 1, 2, 3, 4].map((day) => ({ ...hoursOf(day), guaranteedMilli: 250, limitMilli: 500 }));
  await change(api, "put", `/teams/${team}/quotas/soft/windows`, { windows });
  const lesson = { teamId: team, gpuType: "soft", amount: "0.25", unit: "0.25", note: "A class" };
  const hours = { startsAt: "2099-01-06T10:00:00Z", endsAt: "2099-01-06T12:00:00Z" };
  const { id } = await change<{ id: string }>(api, "post", "/reservations", { ...lesson, ...hours });
  await check(page, "/teams/demo");
  const calendar = page.getByRole("region", { name: "Calendar" });
  await expect(calendar.getByText("Mon to Fri 08:00 to 20:00 UTC")).toBeVisible();
  await expect(page.getByRole("cell", { name: "A class" })).toBeVisible();
  await check(page, "/calendars");
  await change(api, "delete", `/reservations/${id}`);
  await change(api, "put", `/teams/${team}/quotas/soft/windows`, { windows: [] });
  await api.dispose();
});

test("a reservation that repeats is made at once, is one row, and is cancelled for a week or from one on", async () => {
  await page.goto("/teams/demo");
  await page.getByRole("button", { name: "Reserve" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("From (UTC)").fill("2099-01-06T10:00");
  await dialog.getByLabel("To (UTC)").fill("2099-01-06T12:00");
  await dialog.getByLabel("What for").fill("A course");
  await dialog.getByLabel("Repeats").selectOption("Every week");
  await dialog.getByLabel("Until").fill("2099-12-31");
  await expect(dialog.getByText("At most 26 weeks at once: until 2099-06-30")).toBeVisible();
  await dialog.getByLabel("Until").fill("2099-02-03");
  await expect(dialog.getByText("5 reservations, one a week, at the same times by the clocks of UTC")).toBeVisible();
  await expectAccessible(page, "a reservation that repeats and what it does");
  await dialog.getByRole("button", { name: "Reserve" }).click();
  await expect(dialog).toHaveCount(0);
  await expect(page.getByText(/^5 reservations are made, one a week/)).toBeVisible();
  const reservations = page.getByRole("region", { name: "Reservations", exact: true });
  const row = reservations.getByRole("row", { name: /A course/ });
  await expect(row).toContainText("weekly until 2099-02-03, 5 times");
  const cancel = row.getByRole("button", { name: /^Cancel the reservation/ });
  await cancel.click();
  await expectAccessible(page, "what is cancelled of a series");
  await dialog.getByLabel("Which").selectOption("2099-02-03 10:00:00 UTC");
  await expect(dialog.getByLabel("And later ones")).toHaveCount(0);
  await dialog.getByRole("button", { name: "Cancel reservation" }).click();
  await expect(dialog).toHaveCount(0);
  await expect(row).toContainText("weekly until 2099-01-27, 4 times");
  await cancel.click();
  await dialog.getByLabel("And later ones").selectOption("This and all 3 later ones");
  await dialog.getByRole("button", { name: "Cancel 4 reservations" }).click();
  await expect(dialog).toHaveCount(0);
  await expect(reservations.getByText("Nothing is reserved")).toBeVisible();
});

test("times are in the browser's zone until another is chosen", async ({ browser, installation }) => {
  const berlin = await pageOf(browser, installation, ADMIN, { timezoneId: "Europe/Berlin" });
  await berlin.goto("/settings");
  const chosen = berlin.getByLabel("Time zone");
  await expect(chosen.locator("option:checked")).toHaveText("As the browser (Europe/Berlin)");
  await berlin.goto("/audit");
  await expect(berlin.getByText(/UTC\+[12]$/).first()).toBeVisible();
  await berlin.goto("/settings");
  await chosen.selectOption("America/St_Johns");
  await expectAccessible(berlin, "the choice of a time zone");
  await berlin.goto("/audit");
  await expect(berlin.getByText(/UTC-[23]:30$/).first()).toBeVisible();
  await berlin.goto("/teams/demo");
  await berlin.getByRole("button", { name: "Reserve" }).click();
  const dialog = berlin.getByRole("dialog");
  await dialog.getByLabel("From (America/St_Johns)").fill("2099-01-06T10:00");
  await dialog.getByLabel("To (America/St_Johns)").fill("2099-01-06T12:00");
  await dialog.getByLabel("What for").fill("Half past one in UTC");
  await dialog.getByRole("button", { name: "Reserve" }).click();
  await expect(dialog).toHaveCount(0);
  await page.goto("/teams/demo");
  const reservations = page.getByRole("region", { name: "Reservations", exact: true });
  await expect(reservations.getByRole("row", { name: /13:30:00 UTC.*15:30:00 UTC/ })).toBeVisible();
  await reservations.getByRole("button", { name: /^Cancel the reservation/ }).click();
  await page.getByRole("button", { name: "Cancel reservation" }).click();
  await expect(reservations.getByText("Nothing is reserved")).toBeVisible();
  await berlin.context().close();
});

test("Ctrl-K goes to a page by the keyboard alone", async () => {
  await page.goto("/workspaces");
  await expect(page.getByRole("button", { name: "Go to (Ctrl-K)" })).toBeEnabled();
  await page.keyboard.press("Control+k");
  const dialog = page.getByRole("dialog", { name: "Go to" });
  await expect(dialog.getByRole("option", { name: "Launch a workspace" })).toBeVisible();
  await expectAccessible(page, "the list behind Ctrl-K");
  await page.keyboard.type("cale");
  await expect(dialog.getByRole("option")).toHaveText(["Calendars"]);
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/\/calendars$/);
  await expect(dialog).toHaveCount(0);
});

test("a device is drained after it is said whom that concerns, and takes leases again", async () => {
  await page.goto("/pool");
  await page.getByRole("button", { name: /^Drain soft-0/ }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByText("would take leases instead of 1.0")).toBeVisible();
  await expectAccessible(page, "the drain of a device");
  await dialog.getByRole("button", { name: "Drain device" }).click();
  await expect(dialog).toHaveCount(0);
  await page.getByRole("button", { name: "Take leases again: soft-0" }).click();
  await expect(page.getByRole("button", { name: "Drain soft-0" })).toBeVisible();
});

test("a stop shows why on every page until it is lifted", async () => {
  await page.goto("/pool");
  await page.getByRole("button", { name: "Stop new leases" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Why").fill("The rack is moved.");
  await dialog.getByRole("button", { name: "Stop new leases" }).click();
  await expect(dialog).toHaveCount(0);
  await page.goto("/workspaces");
  const banner = page.getByText("No new GPUs for anybody:");
  await expect(banner).toBeVisible();
  await expectAccessible(page, "the banner of a stop");
  await page.getByRole("button", { name: "Lift the stop for anybody" }).click();
  await expect(banner).toHaveCount(0);
});

test("another browser is signed out from the settings", async ({ browser }) => {
  const userAgent =
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Safari/605.1";
  const other = await (await browser.newContext({ userAgent })).newPage();
  await signIn(other, ADMIN);
  await page.goto("/settings");
  const sessions = page.getByRole("region", { name: "Sign-in sessions" });
  const there = sessions.getByRole("button", { name: /^Sign out there: Safari on iOS/ }).first();
  const which = await there.getAttribute("aria-label");
  await there.click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Sign out there" }).click();
  // Behind it, nothing has a role.
  await expect(dialog).toHaveCount(0);
  await expect(sessions.getByRole("button", { name: which ?? "", exact: true })).toHaveCount(0);
  await other.goto("/workspaces");
  await expect(other).toHaveURL(/sign-in/);
  await other.context().close();
});

/** A workspace of the admin's that runs, made when it is first asked for. */
let made: Promise<Workspace> | undefined;
async function aWorkspace({ portalUrl }: Installation): Promise<Workspace> {
  made ??= signInByApi(portalUrl).then(async (api) => {
    const workspace = await launchByApi(api, "looked at");
    await api.dispose();
    return workspace;
  });
  return await made;
}

test("a setting of a workspace that was changed meanwhile is not overwritten, and what was chosen stays", async ({
  installation,
}) => {
  const { id } = await aWorkspace(installation);
  await page.goto(`/workspaces/${id}/settings`);
  const limit = page.getByRole("region", { name: "Idle limit" });
  const choice = limit.getByLabel("Stop after");
  const save = limit.getByRole("button", { name: "Save" });
  await choice.selectOption("1 h");
  const headers = { origin: new URL(page.url()).origin };
  const other = { data: { idleSeconds: 7200 }, headers };
  expect((await page.request.put(`/api/v1/workspaces/${id}/idle-limit`, other)).status()).toBe(200);
  await save.click();
  await expect(limit.getByText("Somebody else has changed", { exact: false })).toBeVisible();
  await expect(choice).toHaveValue("3600");
  await save.click();
  await expect(page.getByText("The idle limit was changed.", { exact: true })).toBeVisible();
  // The form stays open: one's own edit is none of somebody else.
  await choice.selectOption("what my team says");
  await save.click();
  await expect(limit.getByText("Somebody else has changed", { exact: false })).toHaveCount(0);
});

test("sign-in and set-up are accessible and fit without a session", async ({ browser }) => {
  const stranger = await (await browser.newContext()).newPage();
  watch(stranger);
  for (const address of ["/sign-in", "/setup"]) await check(stranger, address);
  await stranger.context().close();
});

test("a day that is none is answered with a sentence", async () => {
  for (const address of ["/usage", "/audit"]) {
    await page.goto(`${address}?from=2026-02-30`);
    await expect(page.getByText("“2026-02-30” is no day")).toBeVisible();
    await expectAccessible(page, `${address} with a day that is none`);
  }
});

test("no page had a script or its live stream refused, or differed from what the server sent", () => {
  expect(refused).toEqual([]);
});
