/** `npm run pictures`: draws docs/pages anew, in a real browser. Words go to Playwright: `-- -g "the pool"`. */
import { installChromium } from "#scripts/lib/chromium.ts";
import { run } from "#scripts/lib/processes.ts";

const onLine = (line: string) => console.log(line);

await installChromium(onLine);
const words = ["test", "--config", "playwright.pictures.config.ts", ...process.argv.slice(2)];
await run(process.execPath, ["node_modules/@playwright/test/cli.js", ...words], { env: process.env, onLine });
