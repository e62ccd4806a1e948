/** Writes what is made from schemas and records: openapi.json, native/schemas/*.json, the chart's workspaces and the conformance runs. `--check` fails when one is stale. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { CHART_SCHEMA, chartSchema } from "#scripts/generate/chart-schema.ts";
import { CONFORMANCE, conformanceRuns } from "#scripts/generate/conformance.ts";
import { nativeSchemas } from "#scripts/generate/native-schemas.ts";
import { describeApi } from "#scripts/generate/openapi.ts";

const check = process.argv.includes("--check");
const files = new Map<string, unknown>([
  ["openapi.json", await describeApi()],
  ...nativeSchemas(),
  [CHART_SCHEMA, await chartSchema()],
  [CONFORMANCE, await conformanceRuns()],
]);
const stale: string[] = [];
for (const [file, content] of files) {
  const text = `${JSON.stringify(content, null, 2)}\n`;
  const before = await readFile(file, "utf8").catch(() => "");
  if (before === text) continue;
  stale.push(file);
  if (check) continue;
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, text);
}
if (check && stale.length > 0) {
  console.error(`Stale: ${stale.join(", ")}. Run npm run generate.`);
  process.exitCode = 1;
} else {
  console.log(stale.length === 0 ? "Everything generated is up to date." : `Wrote ${stale.join(", ")}.`);
}
