/** Every page, in light and dark, narrow and wide: nothing for axe to find, nothing that overflows, no script refused. */
import { type BrowserContext, expect, type Page, test } from "@playwright/test";
import { expectAccessible, expectAccessibleInBoth } from "./fixtures/accessible.ts";
import { asAdmin } from "./fixtures/portal.ts";

test.describe.configure({ mode: "serial" });

let context: BrowserContext;
let page: Page;
const refused: string[] = [];

test.beforeAll(async ({ browser }) => {
  context = await browser.newContext();
  page = await asAdmin(await context.newPage());
  page.on("console", (message) => {
    if (message.type() === "error" && /Content Security Policy|Hydration/i.test(message.text()))
      refused.push(message.text());
  });
});

const PAGES = [
  "/workspaces",
  "/workspaces/new",
  "/gpus",
  "/teams",
  "/teams/demo",
  "/pool",
  "/people",
  "/audit",
  "/settings",
  "/no-such-page",
];

async function check(at: Page, address: string): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    for (const width of [390, 1440]) {
      await at.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await at.setViewportSize({ width, height: 900 });
      await at.goto(address);
      await expect(at.getByRole("heading", { level: 1 })).toHaveCount(1);
      const where = `${address} ${colorScheme} ${width}`;
      await expectAccessible(at, where);
      const overflow = await at.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      expect(overflow, `${where} is wider than the window`).toBeLessThanOrEqual(0);
    }
  }
}

for (const address of PAGES) {
  test(`${address} is accessible and fits`, async () => {
    await check(page, address);
  });
}

test("the dialogs to invite and to add a GPU server are accessible", async () => {
  for (const [address, name] of [
    ["/people", "Invite"],
    ["/pool", "Add GPU server"],
  ] as const) {
    await page.goto(address);
    await page.getByRole("button", { name, exact: true }).first().click();
    const dialog = page.getByRole("dialog");
    await expect(dialog.getByRole("textbox").first()).toBeVisible();
    await expectAccessibleInBoth(page, `${name} on ${address}`);
    await page.keyboard.press("Escape");
    await expect(dialog).toHaveCount(0);
  }
});

test("every page of a workspace is accessible and fits", async () => {
  await page.goto("/workspaces?scope=all");
  const response = await page.request.get("/api/v1/workspaces?scope=all");
  const { workspaces } = (await response.json()) as { workspaces: { id: string }[] };
  for (const { id } of workspaces.slice(0, 1)) {
    for (const tab of ["", "/notebooks", "/log", "/gpu", "/settings"]) await check(page, `/workspaces/${id}${tab}`);
  }
});

test("the dialogs of a workspace are accessible", async () => {
  const response = await page.request.get("/api/v1/workspaces?scope=all");
  const { workspaces } = (await response.json()) as { workspaces: { id: string; name: string }[] };
  const [first] = workspaces;
  if (first === undefined) return;
  await page.goto(`/workspaces/${first.id}/settings`);
  await page.getByRole("button", { name: `More for ${first.name}` }).click();
  await page.getByRole("menuitem", { name: "Duplicate" }).click();
  await expectAccessibleInBoth(page, "Duplicate");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Add variable" }).click();
  await expectAccessibleInBoth(page, "Add variable");
  await page.keyboard.press("Escape");
});

test("sign-in and set-up are accessible and fit without a session", async ({ browser }) => {
  const stranger = await (await browser.newContext()).newPage();
  for (const address of ["/sign-in", "/setup"]) await check(stranger, address);
});

test("no page had a script refused or differed from what the server sent", () => {
  expect(refused).toEqual([]);
});
