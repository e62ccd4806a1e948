import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["{app,components,server,scripts,bench}/**/*.test.{ts,tsx}"],
    globalSetup: ["server/db/testing-global-setup.ts"],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Two cores: more workers only wait for one another.
    maxWorkers: 2,
    // What passes the second time is named as flaky in the closing table.
    retry: 1,
    env: { SLUICE_LOG_LEVEL: "silent" },
  },
});
