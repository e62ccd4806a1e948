import { bootstrap } from "./bootstrap.mjs";

if (await bootstrap(import.meta.url)) await import("./cluster/main.ts");
