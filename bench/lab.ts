/**
 * How long Open takes in Chromium: from the click in the portal until JupyterLab shows the notebook that was open, with
 * an idle kernel. A browser without a cache opens it first, then the same browser again. A whole installation on this
 * machine serves it, as `npm start` brings it up.
 */
import { chromium, type Page } from "@playwright/test";
import { launchByApi, signInByApi, stopWorkspaces } from "../e2e/fixtures/api.ts";
import { BUILT } from "../e2e/fixtures/built.ts";
import prepare from "../e2e/fixtures/global-setup.ts";
import { startInstallation } from "../e2e/fixtures/installation.ts";
import { Notebook } from "../e2e/fixtures/notebook.ts";
import { openLab, pageOf } from "../e2e/fixtures/portal.ts";
import config from "../playwright.config.ts";

const ROUNDS = 5;
const LIMIT_MS = 60_000;

export const targets = { lab_open_s: "<= 4", lab_again_s: "<= 4" };

export async function run(): Promise<{ metrics: Record<string, number> }> {
  await prepare();
  const installation = await startInstallation({ builtBy: BUILT });
  const browser = await chromium.launch(config.use?.launchOptions);
  try {
    await installation.ready;
    const first = await pageOf(browser, installation);
    const api = await signInByApi(installation.portalUrl);
    const { id, name } = await launchByApi(api, "bench");
    await first.goto(`/workspaces/${id}`);
    const notebook = await Notebook.create(await openLab(first, name));
    await notebook.run("x = 42");
    await saveLayout(notebook.page);
    await first.context().close();

    const opened: number[] = [];
    const again: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const page = await pageOf(browser, installation);
      await page.goto(`/workspaces/${id}`);
      opened.push(await secondsToOpen(page, name));
      again.push(await secondsToOpen(page, name));
      await page.context().close();
      console.log(`  ${opened.at(-1)?.toFixed(2)} s, again ${again.at(-1)?.toFixed(2)} s`);
    }
    await stopWorkspaces(api);
    await api.dispose();
    return { metrics: { lab_open_s: median(opened), lab_again_s: median(again) } };
  } finally {
    await browser.close();
    await installation.stop();
  }
}

/** JupyterLab writes what is open some seconds after it has changed. */
async function saveLayout(lab: Page): Promise<void> {
  await lab.waitForResponse(
    (answer) => answer.request().method() === "PUT" && answer.url().includes("/api/workspaces/"),
    {
      timeout: LIMIT_MS,
    },
  );
}

async function secondsToOpen(page: Page, name: string): Promise<number> {
  const button = page.getByRole("button", { name: `Open ${name} in a new tab` });
  await button.waitFor({ timeout: LIMIT_MS });
  const began = performance.now();
  const [lab] = await Promise.all([page.context().waitForEvent("page"), button.click()]);
  const ready = lab.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook-ExecutionIndicator[data-status=idle]");
  await ready.waitFor({ timeout: LIMIT_MS });
  await lab.locator("#jp-main-statusbar").getByText("| Idle").waitFor({ timeout: LIMIT_MS });
  await lab.locator("#jupyterlab-splash").waitFor({ state: "detached", timeout: LIMIT_MS });
  const seconds = (performance.now() - began) / 1000;
  console.log(await transfers(lab));
  await lab.close();
  return seconds;
}

/** The requests of the page, the slowest first. */
async function transfers(lab: Page): Promise<string> {
  const loaded = await lab.evaluate(() => {
    const entries = [
      ...(performance.getEntriesByType("navigation") as PerformanceNavigationTiming[]),
      ...(performance.getEntriesByType("resource") as PerformanceResourceTiming[]),
    ];
    return entries.map(({ name, startTime, responseEnd, transferSize, decodedBodySize }) => {
      const { pathname } = new URL(name);
      return { pathname, from: startTime, to: responseEnd, sent: transferSize, bytes: decodedBodySize };
    });
  });
  const mib = (bytes: number) => (bytes / 2 ** 20).toFixed(1);
  const sum = (key: "sent" | "bytes") => mib(loaded.reduce((total, each) => total + each[key], 0));
  const slowest = loaded.sort((a, b) => b.to - b.from - (a.to - a.from)).slice(0, 8);
  return [
    `  ${loaded.length} requests, ${sum("sent")} MiB sent, ${sum("bytes")} MiB of content; the slowest:`,
    ...slowest.map(
      ({ pathname, from, to }) => `    ${from.toFixed(0).padStart(5)}-${to.toFixed(0).padEnd(5)} ms ${pathname}`,
    ),
  ].join("\n");
}

const median = (values: number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
