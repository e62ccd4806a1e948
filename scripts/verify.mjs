import { bootstrap } from "./bootstrap.mjs";

if (await bootstrap(import.meta.url)) await import("./test/verify.ts");
