/**
 * Runs after every install. postgres.js 3.4.9 writes to a socket that has just closed (porsager/postgres#1208): when
 * the database goes away during a transaction, the rollback that follows ends the whole process, or leaves a pooled
 * connection that never sends again. Until a release guards it, this does, and stops the install when it no longer fits.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";

const MARK = "/* closed-socket guard */";
const edits = [
  [
    "  function nextWrite(fn) {\n",
    `  function nextWrite(fn) {
    if (socket === null) { ${MARK}
      nextWriteTimer !== null && clearImmediate(nextWriteTimer)
      chunk = nextWriteTimer = null
      error(Errors.connection('CONNECTION_CLOSED', options, socket))
      return false
    }
`,
  ],
  [
    "    clearImmediate(nextWriteTimer)\n    socket.removeListener('data', data)\n    socket.removeListener('connect', connected)\n    idleTimer",
    "    clearImmediate(nextWriteTimer)\n    chunk = nextWriteTimer = null\n    socket.removeListener('data', data)\n    socket.removeListener('connect', connected)\n    idleTimer",
  ],
];

for (const folder of ["src", "cjs/src"]) {
  const file = new URL(`../node_modules/postgres/${folder}/connection.js`, import.meta.url);
  if (!existsSync(file)) continue;
  const before = readFileSync(file, "utf8");
  if (before.includes(MARK)) continue;
  const after = edits.reduce((text, [from, to]) => {
    if (text.split(from).length !== 2)
      throw new Error(`${file.pathname} has changed: see whether the guard is still needed.`);
    return text.replace(from, to);
  }, before);
  writeFileSync(file, after);
}
