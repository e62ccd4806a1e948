import { bootstrap } from "./bootstrap.mjs";

if (await bootstrap(import.meta.url, { development: false })) await import("./start/main.ts");
