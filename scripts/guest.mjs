import { bootstrap } from "./bootstrap.mjs";

if (await bootstrap(import.meta.url, { native: false })) await import("./guest/main.ts");
