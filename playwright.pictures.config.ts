import { defineConfig } from "@playwright/test";
import base from "./playwright.config.ts";

/** What `npm run pictures` runs: the same browser, and what draws instead of what tests. */
export default defineConfig({
  ...base,
  testMatch: "**/*.pictures.ts",
  projects: [{ name: "pictures" }],
  workers: 1,
  retries: 0,
  // Each part begins an installation of its own.
  timeout: 900_000,
  reporter: "list",
});
