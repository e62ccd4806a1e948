import { defineConfig } from "vitest/config";

/** Tests on a real Kubernetes: `npm run test:cluster` starts it, and runs this inside its network. */
export default defineConfig({
  test: {
    include: ["{server,scripts}/**/*.cluster.ts"],
    globalSetup: ["server/db/testing-global-setup.ts"],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    maxWorkers: 1,
    env: { SLUICE_LOG_LEVEL: "silent" },
  },
});
