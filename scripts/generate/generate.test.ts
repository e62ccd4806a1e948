import { readFile } from "node:fs/promises";
import { expect, it } from "vitest";
import { CHART_SCHEMA, chartSchema } from "#scripts/generate/chart-schema.ts";
import { CONFORMANCE, conformanceRuns } from "#scripts/generate/conformance.ts";
import { nativeSchemas } from "#scripts/generate/native-schemas.ts";
import { describeApi } from "#scripts/generate/openapi.ts";

/** Reading the errors out of the sources takes seconds, so it is made once. */
const document = await describeApi();

it("openapi.json is what the routes and contracts say (npm run generate)", async () => {
  expect(JSON.parse(await readFile("openapi.json", "utf8"))).toEqual(JSON.parse(JSON.stringify(document)));
});

it.each(nativeSchemas())("%s is what the contracts say (npm run generate)", async (file, content) => {
  expect(JSON.parse(await readFile(file, "utf8"))).toEqual(JSON.parse(JSON.stringify(content)));
});

it("the chart's schema says of workspaces what the launcher reads (npm run generate)", async () => {
  expect(JSON.parse(await readFile(CHART_SCHEMA, "utf8"))).toEqual(JSON.parse(JSON.stringify(await chartSchema())));
});

it("the portal tells of the conformance runs what was recorded (npm run generate)", async () => {
  expect(JSON.parse(await readFile(CONFORMANCE, "utf8"))).toEqual(await conformanceRuns());
});

it("every operation has a name of its own, and says what it answers", async () => {
  const { paths } = document as {
    paths: Record<string, Record<string, { operationId: string; responses: object }>>;
  };
  const operations = Object.values(paths).flatMap((path) => Object.values(path));
  expect(operations.length).toBeGreaterThan(30);
  expect(new Set(operations.map((operation) => operation.operationId)).size).toBe(operations.length);
  for (const { responses } of operations) {
    expect(Object.keys(responses)).toEqual(expect.arrayContaining(["400", "429", "500", "503"]));
  }
});
