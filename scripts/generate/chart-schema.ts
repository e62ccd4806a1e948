import { readFile } from "node:fs/promises";
import { z } from "zod";
import { workspacesValues } from "#server/launchers/kubernetes/settings.ts";

export const CHART_SCHEMA = "deploy/helm/sluice/values.schema.json";

/** The chart's own values as they are written there, and the workspaces' as the launcher reads them. */
export async function chartSchema(): Promise<unknown> {
  const written = JSON.parse(await readFile(CHART_SCHEMA, "utf8")) as { properties: Record<string, unknown> };
  const made = z.toJSONSchema(workspacesValues, { io: "input" });
  // The file has one of its own.
  delete made.$schema;
  const $comment = "Made from server/launchers/kubernetes/settings.ts: npm run generate";
  return { ...written, properties: { ...written.properties, workspaces: { $comment, ...made } } };
}
