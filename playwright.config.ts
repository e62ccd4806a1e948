import { defineConfig } from "@playwright/test";

/** Journeys with an installation of their own. They wait half of their time, so they run beside the others. */
const OWN = ["**/4-restart.e2e.ts", "**/7-environments.e2e.ts"];

/** Journeys in real Chromium against whole installations started by e2e/fixtures/installation.ts. */
export default defineConfig({
  testDir: "e2e",
  testMatch: "**/*.e2e.ts",
  fullyParallel: false,
  workers: 2,
  // One after the other each: the first share an installation, whose quotas and stops they change.
  projects: [
    { name: "shared", testIgnore: OWN, workers: 1 },
    { name: "own", testMatch: OWN, workers: 1 },
  ],
  // What passes the second time is named as flaky in the closing table.
  retries: 1,
  timeout: 240_000,
  expect: { timeout: 20_000 },
  reporter: [["list"], ["json", { outputFile: process.env.SLUICE_E2E_REPORT ?? "test-results/e2e.json" }]],
  globalSetup: "./e2e/fixtures/global-setup.ts",
  use: {
    baseURL: process.env.SLUICE_PORTAL_URL,
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
