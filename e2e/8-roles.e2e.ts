/**
 * What a member, a lead and an admin have before them: every page that they are offered, and every dialog on it, opened
 * by the keyboard alone, with nothing for axe to find in light or dark.
 */
import { mkdir } from "node:fs/promises";
import path from "node:path";
import { type APIRequestContext, expect, type Page } from "@playwright/test";
import { expectAccessible } from "./fixtures/accessible.ts";
import { change, joinByApi, launchByApi, runByApi, signInByApi, stopWorkspaces, teamByName } from "./fixtures/api.ts";
import { Keyboard } from "./fixtures/keyboard.ts";
import { test } from "./fixtures/lane.ts";
import { ADMIN, asAdmin, signIn } from "./fixtures/portal.ts";

const run = Date.now().toString(36);
const member = { email: `member-${run}@example.test`, name: `Member ${run}` };
const lead = { email: `lead-${run}@example.test`, name: `Lead ${run}` };
const stranger = { email: `stranger-${run}@example.test`, name: `Stranger ${run}` };
const guest = `guest-${run}@example.test`;
const dataset = `words-${run}`;
const workspace = `roles ${run}`;

let admin: APIRequestContext;
/** The workspace's page. */
let at: string;

/** A button that opens a dialog, or a menu and its item that does. */
type Opener = string | RegExp | readonly [menu: string, item: string];
type Role = { email: string; pages: string[]; dialogs: [address: string, openers: Opener[]][] };

/** Beside what the list of pages offers. */
const EVERYBODYS = ["/workspaces/new", "/tour", "/teams/demo", "/settings"];

function rolesOf(): Record<"member" | "lead" | "admin", Role> {
  const tabs = ["", "/notebooks", "/log", "/gpu", "/people", "/settings"].map((tab) => `${at}${tab}`);
  const menu = `More for ${workspace}`;
  const lastMonth = new Date(new Date().setUTCDate(0)).toISOString().slice(0, 7);
  return {
    member: {
      email: member.email,
      pages: [...EVERYBODYS, ...tabs],
      dialogs: [
        ["/workspaces", [/^Notices/, "Go to (Ctrl-K)"]],
        [at, ["Stop", "Restart", "Duplicate", "Remove"].map((item) => [menu, item] as const)],
        [`${at}/notebooks`, ["Shut down train.ipynb"]],
        [`${at}/people`, ["Invite", `Change the role of ${lead.name}`, `Remove ${lead.name} from ${workspace}`]],
        [`${at}/settings`, ["Add variable", "Change EPOCHS", "Remove EPOCHS", "Remove workspace"]],
        ["/gpus", [/^End lease of /, /^Why .* waits$/]],
        ["/settings", ["New token", "Revoke reader", /^Sign out there/]],
        ["/teams/demo", ["Request more"]],
      ],
    },
    lead: {
      email: lead.email,
      pages: [...EVERYBODYS, ...tabs.slice(0, 5)],
      dialogs: [
        [`${at}/people`, [`Leave ${workspace}`]],
        ["/datasets", ["Register", `Edit ${dataset}`, `Remove ${dataset}`]],
        ["/environments", ["Propose"]],
        [
          "/teams/demo",
          [
            ...["Invite", "Request more", /^Cancel the reservation/, /^End lease of /],
            `Revoke the invitation of ${guest}`,
            [`More for ${member.name}`, "Remove from team"],
          ],
        ],
      ],
    },
    admin: {
      email: ADMIN,
      pages: [...EVERYBODYS, "/no-such-page"],
      dialogs: [
        [
          "/pool",
          [
            ...["Stop new leases", "Add GPU server", "Drain soft-0", /^End lease of /, /^Why .* waits$/],
            ...["Set zone", "Drain", "Remove server"].map((item) => ["More for local", item] as const),
          ],
        ],
        ["/teams", ["New team"]],
        ["/teams/demo", ["Add GPU type", "Edit soft quota", "Edit policy", "Edit calendar of soft", "Archive"]],
        [
          `/people?search=${run}`,
          ["Invite", ...["Make an admin", "Deactivate"].map((item) => [`More for ${member.name}`, item] as const)],
        ],
        ["/environments", ["Propose", "Retire CuPy"]],
        ["/sizes", ["Add size", `Edit Size ${run}`, `Remove Size ${run}`]],
        ["/calendars", ["Reserve", "Edit calendar of soft"]],
        ["/costs", [/ the price of soft$/]],
        [`/costs?month=${lastMonth}`, [`Close ${lastMonth}`]],
      ],
    },
  };
}

test.beforeAll(async ({ browser, installation }) => {
  test.setTimeout(240_000);
  const first = await browser.newContext();
  await asAdmin(await first.newPage(), installation);
  await first.close();
  const { portalUrl, stateDir } = installation;
  admin = await signInByApi(portalUrl);
  // Whatever an earlier journey has left would hold a part of the device.
  await stopWorkspaces(admin);
  const team = await teamByName(admin, "demo");
  for (const { email, name } of [member, lead, stranger]) await joinByApi(admin, team, email, name);
  await change(admin, "post", `/teams/${team}/members`, { email: lead.email, role: "lead" });
  await change(admin, "post", "/invitations", { email: guest, teamId: team });
  const size = { name: `Size ${run}`, cpuMilli: 500, memoryBytes: 2 ** 30, position: 900 };
  await change(admin, "post", "/workspace-sizes", size);
  const folder = path.join(stateDir, "datasets", "teams", "demo", dataset);
  await mkdir(folder, { recursive: true });
  const source = { kind: "folder", path: folder };
  await change(admin, "post", "/datasets", { name: dataset, teamId: team, source });
  const lesson = { gpuType: "soft", milli: 250, unitMilli: 250, note: "Lesson" };
  const hours = { startsAt: "2099-01-06T10:00:00Z", endsAt: "2099-01-06T12:00:00Z" };
  await change(admin, "post", "/reservations", { teamId: team, ...lesson, ...hours });

  const own = await signInByApi(portalUrl, member.email);
  await change(own, "post", "/access-tokens", { name: "reader" });
  const { id } = await launchByApi(own, workspace);
  at = `/workspaces/${id}`;
  await change(own, "put", `${at}/variables/EPOCHS`, { value: "20" });
  await change(own, "post", `${at}/collaborators`, { person: lead.email, role: "editor" });
  expect(await runByApi(own, id, "train.ipynb", "%gpu attach 0.5")).toContain("Attached 0.5 GPU");
  // Waits until the end of these tests.
  runByApi(own, id, "wait.ipynb", "%gpu attach 1 --wait 20m").catch(() => undefined);
  await expect(async () => {
    const { requests } = (await (await own.get("/api/v1/gpus")).json()) as { requests: unknown[] };
    expect(requests).toHaveLength(1);
  }).toPass({ timeout: 60_000 });
});

test.afterAll(async () => {
  await stopWorkspaces(admin);
  await admin.dispose();
});

for (const name of ["member", "lead", "admin"] as const) {
  test(`every page that a ${name} is offered is accessible`, async ({ page }) => {
    const { email, pages } = rolesOf()[name];
    await signIn(page, email);
    const links = await page.getByRole("navigation", { name: "Pages" }).getByRole("link").all();
    const offered = await Promise.all(links.map(async (link) => await link.getAttribute("href")));
    for (const address of [...offered.filter((href) => href !== null), ...pages]) {
      await page.goto(address);
      await expect(page.getByRole("heading", { level: 1 })).toHaveCount(1);
      await expectAccessible(page, `${address} as ${name}`);
    }
  });

  test(`every dialog of a ${name} opens and closes by the keyboard alone and is accessible`, async ({ page }) => {
    const { email, dialogs } = rolesOf()[name];
    await signIn(page, email);
    for (const [address, openers] of dialogs) {
      await page.goto(address);
      for (const opener of openers) await lookInto(page, opener, `${String(opener)} on ${address} as ${name}`);
    }
  });
}

test("the link of a workspace tells a stranger whom to ask", async ({ page }) => {
  await signIn(page, stranger.email);
  await page.goto(at.replace("/workspaces/", "/shared/"));
  await expect(page.getByText(`${member.name} can invite you`, { exact: false })).toBeVisible();
  await expectAccessible(page, "the link of a workspace as a stranger");
});

test("where the browser opens no window, the address of the sample user's is shown", async ({ page }) => {
  await page.addInitScript(() => {
    window.open = () => null;
  });
  await signIn(page, ADMIN);
  await page.goto("/people");
  await lookInto(page, "Open as a sample user", "the address of the sample user's window");
});

test("the list of pages on a phone opens and closes by the keyboard alone and is accessible", async ({ page }) => {
  await signIn(page, member.email);
  await page.setViewportSize({ width: 390, height: 844 });
  await lookInto(page, "Pages", "the list of pages");
});

/** Opens a dialog, looks at it, and leaves it: whoever goes on does so from where they were. */
async function lookInto(page: Page, opener: Opener, where: string): Promise<void> {
  await test.step(where, async () => {
    const keys = new Keyboard(page);
    const button = (name: string | RegExp) => page.getByRole("button", { name, exact: true }).first();
    if (typeof opener === "string" || opener instanceof RegExp) await keys.press(button(opener));
    else await keys.pick(button(opener[0]), page.getByRole("menuitem", { name: opener[1], exact: true }));
    const dialog = page.getByRole("dialog");
    await expect(dialog.getByRole("heading").first()).toBeVisible();
    await expectAccessible(page, where);
    await page.keyboard.press("Escape");
    await expect(dialog).toHaveCount(0);
    await expect.soft(page.locator(":focus"), `${where}: the focus is lost`).toHaveCount(1, { timeout: 3_000 });
  });
}
