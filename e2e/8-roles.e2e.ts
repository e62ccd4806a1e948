/**
 * What a member, a lead and an admin have before them: every page that they are offered, and every dialog on it, opened
 * by the keyboard alone, with nothing for axe to find in light or dark.
 */
import { mkdir, readFile } from "node:fs/promises";
import path from "node:path";
import { type APIRequestContext, expect, type Page } from "@playwright/test";
import { routes } from "#scripts/pictures/pages.ts";
import { expectAccessible } from "./fixtures/accessible.ts";
import {
  ADMIN,
  change,
  ensureAdmin,
  joinByApi,
  launchByApi,
  runByApi,
  signInByApi,
  stopWorkspaces,
  teamByName,
  versionByName,
} from "./fixtures/api.ts";
import { beginPoolLastMonth, lastMonth } from "./fixtures/database.ts";
import { dialogsOfSources } from "./fixtures/dialogs.ts";
import { Keyboard } from "./fixtures/keyboard.ts";
import { test } from "./fixtures/lane.ts";
import { pageOf } from "./fixtures/portal.ts";

const run = Date.now().toString(36);
const member = { email: `member-${run}@example.test`, name: `Member ${run}` };
const lead = { email: `lead-${run}@example.test`, name: `Lead ${run}` };
const stranger = { email: `stranger-${run}@example.test`, name: `Stranger ${run}` };
const guest = `guest-${run}@example.test`;
const dataset = `words-${run}`;
const workspace = `roles ${run}`;
const removed = `removed ${run}`;

let admin: APIRequestContext;
/** The workspace's page. */
let at: string;

/** A button that opens a dialog, or a menu and its item that does. */
type Opener = string | RegExp | readonly [menu: string, item: string];
/** Which dialog (`dialogsOfSources`), and what opens it. */
type Opened = readonly [dialog: string, ...openers: Opener[]];
type Role = { email: string; pages: string[]; dialogs: [address: string, ...opened: Opened[]][] };

/** Beside what the list of pages offers. */
const EVERYBODYS = ["/workspaces/new", "/tour", "/teams/demo", "/gpus/works-here", "/notices", "/settings"];

function rolesOf(): Record<"member" | "lead" | "admin", Role> {
  const tabs = ["", "/notebooks", "/log", "/gpu", "/people", "/settings"].map((tab) => `${at}${tab}`);
  const ofWorkspace = (item: string) => [`More for ${workspace}`, item] as const;
  const ofMember = (item: string) => [`More for ${member.name}`, item] as const;
  const ofServer = (item: string) => ["More for local", item] as const;
  const [endsLease, givesBack, explains] = [/^End lease of /, /^Give back /, /^Why .* waits$/];
  return {
    member: {
      email: member.email,
      pages: [...EVERYBODYS, ...tabs],
      dialogs: [
        [
          "/workspaces",
          ["shell/bell", /^Notices/],
          ["shell/command-list", "Go to (Ctrl-K)"],
          ["workspace/removed-table: Restore …", `Restore ${removed}`],
          ["workspace/removed-table: Delete the files of …?", `Delete ${removed} now`],
        ],
        [
          at,
          ["workspace/workspace-actions", ofWorkspace("Stop"), ofWorkspace("Restart")],
          ["workspace/rename-workspace", ofWorkspace("Rename")],
          ["workspace/duplicate-workspace", ofWorkspace("Duplicate")],
          ["workspace/remove-workspace", ofWorkspace("Remove")],
        ],
        [`${at}/notebooks`, ["workspace-kernel/kernel-table", "Shut down train.ipynb"]],
        [
          `${at}/people`,
          ["workspace-collaborator/collaborator-form", "Invite", `Change the role of ${lead.name}`],
          ["workspace-collaborator/collaborator-table", `Remove ${lead.name} from ${workspace}`],
        ],
        [
          `${at}/settings`,
          ["workspace-variable/variable-form", "Add variable", "Change EPOCHS"],
          ["workspace-variable/variable-section", "Remove EPOCHS"],
          ["workspace/remove-workspace", "Remove workspace"],
        ],
        ["/gpus", ["lease/end-lease-dialog", givesBack], ["lease/explain-request", explains]],
        [
          "/settings",
          ["user/change-password-form", "Change password"],
          ["access-token/token-section: Your new token", "New token"],
          ["access-token/token-section: Revoke …?", "Revoke reader"],
          ["session/session-section", /^Sign out there/],
        ],
        ["/teams/demo", ["team/quota-request-form", "Request more"]],
      ],
    },
    lead: {
      email: lead.email,
      pages: [...EVERYBODYS, ...tabs.slice(0, 5)],
      dialogs: [
        [`${at}/people`, ["workspace-collaborator/collaborator-table", `Leave ${workspace}`]],
        [
          "/datasets",
          ["dataset/register-form", "Register"],
          ["dataset/edit-form", `Edit ${dataset}`],
          ["dataset/dataset-table", `Remove ${dataset}`],
        ],
        ["/environments", ["environment/propose-form", "Propose"]],
        ["/pool", ["lease/end-lease-dialog", endsLease], ["lease/explain-request", explains]],
        ["/queue", ["lease/explain-request", explains]],
        [
          "/teams/demo",
          ["team/end-increase", `End the increase of ${member.name}`],
          ["user/invitation-form", "Invite"],
          ["team/quota-request-form", "Request more"],
          ["reservation/cancel-reservation", /^Cancel the reservation/],
          ["lease/end-lease-dialog", endsLease],
          ["user/invitation-table", `Revoke the invitation of ${guest}`],
          ["team/member-table", ofMember("Remove from team")],
        ],
      ],
    },
    admin: {
      email: ADMIN,
      pages: [...EVERYBODYS, "/no-such-page"],
      dialogs: [
        [
          "/pool",
          ["stop/stop-leases", "Stop new leases"],
          ["pool/add-gpu-server", "Add GPU server"],
          ["pool/drain-dialog", "Drain soft-0", ofServer("Drain")],
          ["pool/set-kind", ["More for soft-0", "Set kind"]],
          ["lease/end-lease-dialog", endsLease],
          ["lease/explain-request", explains],
          ["pool/set-zone", ofServer("Set zone")],
          ["pool/server-actions", ofServer("Remove server")],
        ],
        ["/queue", ["lease/explain-request", explains]],
        ["/teams", ["team/new-team", "New team"]],
        [
          "/teams/demo",
          ["team/quota-form: Quota of … for …", "Add GPU type", "Edit soft quota"],
          ["team/policy-form", "Edit policy"],
          ["team/egress-form", "Edit outgoing network"],
          ["calendar/calendar-form", "Edit calendar of soft"],
          ["team/archive-team", "Archive"],
        ],
        [
          `/people?search=${run}`,
          ["user/invitation-form", "Invite"],
          ["user/person-actions: Remove admin rights of …?", ofMember("Make an admin")],
          ["user/password-link", ofMember("New password")],
          ["user/person-actions: Deactivate …?", ofMember("Deactivate")],
        ],
        ["/environments", ["environment/propose-form", "Propose"], ["environment/version-table", "Retire CuPy"]],
        ["/sizes", ["size/offer-form", "Add size", `Edit Size ${run}`], ["size/size-section", `Remove Size ${run}`]],
        ["/policies", ["team/policy-form", "Edit policy of demo"]],
        [
          "/calendars",
          ["reservation/reservation-form", "Reserve"],
          ["calendar/calendar-form", "Edit calendar of soft"],
        ],
        ["/costs", ["cost/price-form: What … costs", / price of soft$/]],
        [`/costs?month=${lastMonth()}`, ["cost/close-month", `Close ${lastMonth()}`]],
      ],
    },
  };
}

/** The bell shows a list of its own, which has no title that a source could name. */
const NO_DIALOG = "shell/bell";
/** Opened by a single test below, or by another journey that has axe look at it under these words. */
const ELSEWHERE: Record<string, [journey: string, where: string]> = {
  "user/open-sample": ["8-roles.e2e.ts", "the address of the sample user's window"],
  "shell/mobile-nav": ["8-roles.e2e.ts", "the list of pages"],
  "environment/approve-environment": ["7-environments.e2e.ts", "the approval of an environment"],
  "environment/proposal-actions": ["7-environments.e2e.ts", "what is lost when a proposal is withdrawn"],
  "workspace/update-offer": ["7-environments.e2e.ts", "what an update ends"],
  "cost/price-form: Remove the price of …?": ["9-keyboard.e2e.ts", "what is lost with a price"],
  "team/quota-form: Remove the … quota of …?": ["9-keyboard.e2e.ts", "what is lost with a quota"],
  "user/identity-group-form": ["7-environments.e2e.ts", "the form of a group"],
  "user/identity-group-section": ["7-environments.e2e.ts", "what is lost with a group"],
};
/** Dialogs for accounts of an identity provider; no installation of these tests has one. */
const NEEDS_A_PROVIDER = [
  "user/person-actions: Keep … as an admin?",
  "user/person-actions: Remove …'s link to the identity provider?",
];
const sources = dialogsOfSources();

type Reader = "stranger" | "member" | "lead" | "admin";
type Whom = keyof typeof READERS;
/** The stranger is a member of the same team, to whom the workspace of `member` is not shared. */
const READERS = {
  everybody: ["stranger", "member", "lead", "admin"],
  itsOwn: ["member", "lead", "admin"],
  leads: ["lead", "admin"],
  admins: ["admin"],
} satisfies Record<string, Reader[]>;

/** Who finds each page; `open`: without having signed in. */
const FOUND_BY: Record<string, Whom | "open"> = {
  ...{ "/setup": "open", "/sign-in": "open", "/invite/[code]": "open", "/password/[code]": "open" },
  ...{ "/workspaces": "everybody", "/workspaces/new": "everybody", "/tour": "everybody", "/shared/[id]": "everybody" },
  ...{ "/workspaces/[id]": "itsOwn", "/workspaces/[id]/notebooks": "itsOwn", "/workspaces/[id]/gpu": "itsOwn" },
  ...{ "/workspaces/[id]/log": "itsOwn", "/workspaces/[id]/people": "itsOwn", "/workspaces/[id]/settings": "itsOwn" },
  ...{ "/gpus": "everybody", "/gpus/works-here": "everybody", "/datasets": "everybody", "/teams": "everybody" },
  ...{ "/teams/[name]": "everybody", "/notices": "everybody", "/settings": "everybody" },
  ...{ "/environments/[id]": "everybody", "/environments": "leads", "/pool": "leads", "/queue": "leads" },
  ...{ "/usage": "leads", "/costs": "leads", "/gpu-audit": "leads", "/audit": "leads" },
  ...{ "/health": "admins", "/what-if": "admins", "/people": "admins", "/sizes": "admins" },
  ...{ "/policies": "admins", "/calendars": "admins" },
};

test("every dialog in the sources is opened by a journey that has axe look at it", async () => {
  const opened = Object.values(rolesOf()).flatMap(({ dialogs }) =>
    dialogs.flatMap(([, ...list]) => list.map(([dialog]) => dialog)),
  );
  const known = new Set([...opened, ...Object.keys(ELSEWHERE), ...NEEDS_A_PROVIDER]);
  known.delete(NO_DIALOG);
  expect([...known].sort()).toEqual([...sources.keys()].sort());
  for (const [journey, where] of Object.values(ELSEWHERE)) {
    const text = await readFile(path.join(import.meta.dirname, journey), "utf8");
    expect(text, `${journey}: ${where}`).toMatch(new RegExp(`(expectAccessible|lookInto)\\([^;]*"${where}"`));
  }
});

test.beforeAll(async ({ installation }) => {
  await ensureAdmin(installation);
  await beginPoolLastMonth(installation);
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
  const lesson = { gpuType: "soft", amount: "0.25", unit: "0.25", note: "Lesson" };
  const hours = { startsAt: "2099-01-06T10:00:00Z", endsAt: "2099-01-06T12:00:00Z" };
  await change(admin, "post", "/reservations", { teamId: team, ...lesson, ...hours });

  const own = await signInByApi(portalUrl, member.email);
  await change(own, "post", "/access-tokens", { name: "reader" });
  // Approved for later, so that it has no effect during these tests.
  const increase = { teamId: team, gpuType: "soft", limitMilli: 500, reason: "a class" };
  const later = { startsAt: "2099-01-06T10:00:00Z", endsAt: "2099-01-06T12:00:00Z" };
  const { id: asked } = await change<{ id: string }>(own, "post", "/quota-requests", { ...increase, ...later });
  await change(admin, "post", `/quota-requests/${asked}/decide`, { approve: true });
  const { id: removedId } = await launchByApi(own, removed);
  await change(own, "delete", `/workspaces/${removedId}`);
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

test("a page is found by those whom it is for, by nobody else, and by nobody who is not signed in", async ({
  playwright,
  installation: { portalUrl },
}) => {
  expect(Object.keys(FOUND_BY).sort()).toEqual(routes());
  const nobody = await playwright.request.newContext({ baseURL: portalUrl });
  const readers = {
    stranger: await signInByApi(portalUrl, stranger.email),
    member: await signInByApi(portalUrl, member.email),
    lead: await signInByApi(portalUrl, lead.email),
    admin,
  };
  const environments = await versionByName(admin, "cuda-python");
  const ids: Record<string, string> = { workspaces: at.split("/").at(-1) ?? "", environments };
  const found: Record<string, Reader[]> = {};
  for (const route of Object.keys(FOUND_BY).filter((each) => FOUND_BY[each] !== "open")) {
    const [, noun = ""] = route.split("/");
    const address = route.replace("[name]", "demo").replace("[id]", ids[noun] ?? ids.workspaces ?? "");
    const sent = await nobody.get(address, { maxRedirects: 0 });
    expect([sent.status(), sent.headers().location], address).toEqual([307, expect.stringContaining("/sign-in?next=")]);
    found[route] = [];
    for (const [reader, api] of Object.entries(readers) as [Reader, APIRequestContext][]) {
      const status = (await api.get(address, { maxRedirects: 0 })).status();
      // The link of a workspace leads those on who were invited.
      expect([200, 307, 404], `${address} as ${reader}`).toContain(status);
      if (status !== 404) found[route].push(reader);
    }
  }
  const expected = Object.entries(FOUND_BY).filter(([, whom]) => whom !== "open");
  expect(found).toEqual(Object.fromEntries(expected.map(([route, whom]) => [route, READERS[whom as Whom]])));
  await nobody.dispose();
  for (const [reader, api] of Object.entries(readers)) if (reader !== "admin") await api.dispose();
});

for (const name of ["member", "lead", "admin"] as const) {
  test(`every page of the role ${name} is accessible, and every dialog on it opens and closes by the keyboard alone`, async ({
    browser,
    installation,
  }) => {
    test.setTimeout(480_000);
    const { email, pages, dialogs } = rolesOf()[name];
    const page = await pageOf(browser, installation, email);
    await page.goto("/workspaces");
    const links = await page.getByRole("navigation", { name: "Pages" }).getByRole("link").all();
    const offered = await Promise.all(links.map(async (link) => (await link.getAttribute("href")) ?? ""));
    const dialogsAt = new Map(dialogs.map(([address, ...opened]) => [address, opened]));
    for (const address of new Set([...offered, ...pages, ...dialogsAt.keys()])) {
      await page.goto(address);
      await expect(page.getByRole("heading", { level: 1 })).toHaveCount(1);
      await expectAccessible(page, `${address} as ${name}`);
      for (const [dialog, ...openers] of dialogsAt.get(address) ?? [])
        for (const opener of openers)
          await lookInto(page, opener, `${String(opener)} on ${address} as ${name}`, sources.get(dialog));
    }
    await page.context().close();
  });
}

test("a lead sees whose GPUs the pool lends, and changes nothing of it", async ({ browser, installation }) => {
  const page = await pageOf(browser, installation, lead.email);
  await page.goto("/pool");
  await expect(page.getByRole("list", { name: "GPUs held, by team" })).toContainText("demo");
  await expect(page.getByRole("img", { name: "soft-0: demo 0.5" })).toBeVisible();
  await expect(page.getByRole("list", { name: "Leases on soft-0" })).toContainText(member.name);
  for (const name of ["Drain soft-0", "More for soft-0", "More for local", "Add GPU server", "Stop new leases"])
    await expect(page.getByRole("button", { name })).toHaveCount(0);
  await page.context().close();
});

test("the link of a workspace tells a stranger whom to ask", async ({ browser, installation }) => {
  const page = await pageOf(browser, installation, stranger.email);
  await page.goto(at.replace("/workspaces/", "/shared/"));
  await expect(page.getByText(`${member.name} can invite you`, { exact: false })).toBeVisible();
  await expectAccessible(page, "the link of a workspace as a stranger");
  await page.context().close();
});

test("where the browser opens no window, the address of the sample user's is shown", async ({
  browser,
  installation,
}) => {
  const page = await pageOf(browser, installation);
  await page.addInitScript(() => {
    window.open = () => null;
  });
  await page.goto("/people");
  await lookInto(page, "Open as a sample user", "the address of the sample user's window");
  await page.context().close();
});

test("the list of pages on a phone opens and closes by the keyboard alone and is accessible", async ({
  browser,
  installation,
}) => {
  const page = await pageOf(browser, installation, member.email, { viewport: { width: 390, height: 844 } });
  await page.goto("/workspaces");
  await lookInto(page, "Pages", "the list of pages");
  await page.context().close();
});

/** Opens a dialog, looks at it, and leaves it: whoever goes on does so from where they were. It is headed by one of `headings`. */
async function lookInto(page: Page, opener: Opener, where: string, headings?: readonly RegExp[]): Promise<void> {
  await test.step(where, async () => {
    const keys = new Keyboard(page);
    const button = (name: string | RegExp) => page.getByRole("button", { name, exact: true }).first();
    if (typeof opener === "string" || opener instanceof RegExp) await keys.press(button(opener));
    else await keys.pick(button(opener[0]), page.getByRole("menuitem", { name: opener[1], exact: true }));
    const dialog = page.getByRole("dialog");
    const heading = dialog.getByRole("heading").first();
    await expect(heading).toBeVisible();
    if (headings) await expect(heading).toHaveText(new RegExp(headings.map(({ source }) => source).join("|")));
    await expectAccessible(page, where);
    await page.keyboard.press("Escape");
    await expect(dialog).toHaveCount(0);
    await expect.soft(page.locator(":focus"), `${where}: the focus is lost`).toHaveCount(1, { timeout: 3_000 });
  });
}
