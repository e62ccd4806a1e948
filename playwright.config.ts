import { defineConfig } from "@playwright/test";

/** What needs no notebook in a browser. */
const PAGES = ["**/3-pages.e2e.ts", "**/8-roles.e2e.ts", "**/9-keyboard.e2e.ts", "**/9-keyboard-forms.e2e.ts"];

/** Journeys in real Chromium, in two lanes side by side, each with an installation of its own (e2e/fixtures/lane.ts). */
export default defineConfig({
  testDir: "e2e",
  testMatch: "**/*.e2e.ts",
  fullyParallel: false,
  workers: 2,
  // One after the other in each: they share its installation, whose quotas and stops they change.
  projects: [
    { name: "journeys", testIgnore: PAGES, workers: 1 },
    { name: "pages", testMatch: PAGES, workers: 1 },
  ],
  // What passes the second time is named as flaky in the closing table.
  retries: 1,
  timeout: 240_000,
  expect: { timeout: 20_000 },
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
