import { bootstrap } from "./bootstrap.mjs";

if (await bootstrap(import.meta.url, { development: false, outlivesReader: true })) await import("./start/main.ts");
