/** `npm run times`: the time table of the last `npm test`, `.ci/run` or `npm run verify` in this checkout. */
import { readRecord, timeTable } from "#scripts/test/record.ts";

const record = await readRecord(process.cwd());
if (record === undefined) {
  console.error("No test run is recorded in this checkout. Run npm test first.");
  process.exit(1);
}
console.log(timeTable(record));
