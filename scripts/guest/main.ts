/**
 * `npm run test:guest`: runs `*.guest.ts` in a virtual machine, for what this machine's own kernel may not have, such as
 * delegated control groups. The guest sees this machine's files, and writes nothing to them.
 *
 *   npm run test:guest                     all files
 *   npm run test:guest -- control-groups   files whose names contain one of the words
 *
 * QEMU emulates the processor, so neither root nor KVM is needed. The first run downloads about 90 MB of packages.
 */
import { globSync } from "node:fs";
import { runInGuest } from "#scripts/guest/boot.ts";
import { guestTools, whyNoGuest } from "#scripts/guest/tools.ts";

const say = (line: string) => console.log(line);
const reason = whyNoGuest();
if (reason !== undefined) {
  console.error(`No virtual machine can run here: ${reason}.`);
  process.exit(1);
}
const words = process.argv.slice(2);
const files = globSync("{server,scripts}/**/*.guest.ts").filter(
  (file) => words.length === 0 || words.some((word) => file.includes(word)),
);
if (files.length === 0) {
  console.error(`No file *.guest.ts has ${words.join(" or ")} in its name.`);
  process.exit(1);
}
const status = await runInGuest(await guestTools(say), { root: process.cwd(), files, say });
console.log(status === 0 ? "All tests in the guest passed." : `The guest ended with ${status}.`);
process.exit(status);
