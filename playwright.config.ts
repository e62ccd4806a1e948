import { defineConfig } from "@playwright/test";
import type { LaneOptions } from "./e2e/fixtures/lane.ts";

const files = (...names: string[]) => names.map((name) => `**/${name}.e2e.ts`);
/** Files that keep the processors busy: every page, by axe and by the keyboard. */
const PAGES = files("3-pages", "8-roles", "9-keyboard");
/** Files that mostly wait, for timers of leases, for downloads and for checks of environments. */
const WAITS = files("4-restart", "5-reclaim", "7-environments", "9-keyboard-forms");

/** An identity provider, which no portal calls before a person signs in with it (7-environments). */
const PROVIDER = {
  SLUICE_OIDC_ISSUER: "https://identity.example.test",
  SLUICE_OIDC_CLIENT_ID: "sluice",
  SLUICE_OIDC_CLIENT_SECRET: "not asked for",
};

/** Journeys in real Chromium, in three lanes side by side, each with its own installation (e2e/fixtures/lane.ts). */
export default defineConfig<object, LaneOptions>({
  testDir: "e2e",
  testMatch: "**/*.e2e.ts",
  fullyParallel: false,
  workers: 3,
  // The files of a lane run in turn: they share its installation, whose quotas and stops they change.
  projects: [
    { name: "journeys", testIgnore: [...PAGES, ...WAITS], workers: 1 },
    { name: "pages", testMatch: PAGES, workers: 1 },
    { name: "waits", testMatch: WAITS, workers: 1, use: { env: PROVIDER } },
  ],
  // What passes the second time is named as flaky in the closing table.
  retries: 1,
  // Some machines are three times slower than others, and three lanes share two cores.
  timeout: 420_000,
  expect: { timeout: 40_000 },
  reporter: [["list"], ["json", { outputFile: process.env.SLUICE_E2E_REPORT ?? "test-results/e2e.json" }]],
  globalSetup: "./e2e/fixtures/global-setup.ts",
  use: {
    // Only where something failed once: recording every test takes a core for itself.
    trace: "on-first-retry",
    screenshot: "only-on-failure",
    viewport: { width: 1440, height: 900 },
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: [
        "--no-sandbox",
        // Nothing here is drawn in three dimensions, and imitating a GPU takes half a core.
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
    },
  },
});
