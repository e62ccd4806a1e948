/**
 * What frameworks must be told to find and use a borrowed GPU, as environment variables of every process of a
 * workspace. The settings and their reasons stand in the `sluice_gpu` package (`frameworks/<name>.json`); its start-up
 * hook sets the same, and what depends on the process, in any other Jupyter.
 */
import { readdir } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { readBeginning } from "./read-beginning.ts";

const settingsSchema = z.strictObject({
  variables: z.array(
    z.strictObject({
      name: z.string(),
      /** `{libraries}` and `{tools}` stand for the package's folders. */
      value: z.string().optional(),
      /** A flag that is added to the variable's other ones: only the process itself knows those. */
      flag: z.string().optional(),
      when: z.array(z.string()).default([]),
      reason: z.string(),
    }),
  ),
});
export type FrameworkSettings = z.infer<typeof settingsSchema>;

export type FrameworkFacts = {
  /** Conditions that hold, e.g. `software`. One that is not known here is left to the process. */
  conditions: ReadonlySet<string>;
  places: { libraries: string; tools: string };
};

/** The variables that hold for every process, whichever framework it loads. */
export function frameworkVariables(settings: FrameworkSettings[], facts: FrameworkFacts): Record<string, string> {
  const known = settings
    .flatMap(({ variables }) => variables)
    .filter(({ when }) => when.every((condition) => facts.conditions.has(condition)));
  return Object.fromEntries(
    known.flatMap(({ name, value }) =>
      value === undefined
        ? []
        : [[name, value.replace(/\{(libraries|tools)\}/g, (_, place: Place) => facts.places[place])]],
    ),
  );
}
type Place = keyof FrameworkFacts["places"];

/** Files of settings that are read, and bytes of each. Ours have a few kilobytes. */
const MOST_FILES = 32;
const MOST_BYTES = 64 * 1024;

/**
 * The settings of the package in this folder; none when it has none. Another package of a proposed environment may have
 * put files there: one that is no settings is left out.
 */
export async function readFrameworkSettings(packageFolder: string): Promise<FrameworkSettings[]> {
  const folder = path.join(packageFolder, "frameworks");
  const found = await readdir(folder).catch(() => []);
  const files = found.filter((file) => file.endsWith(".json")).sort();
  const read = async (file: string) => settingsOf(await readBeginning(path.join(folder, file), MOST_BYTES));
  return (await Promise.all(files.slice(0, MOST_FILES).map(read))).filter((settings) => settings !== undefined);
}

function settingsOf(text: string | undefined): FrameworkSettings | undefined {
  try {
    return settingsSchema.parse(JSON.parse(text ?? ""));
  } catch {
    return undefined;
  }
}

/** What is true of a workspace on this GPU type with these libraries. */
export function frameworkConditions(gpuType: string, libraries: string[]): ReadonlySet<string> {
  const conditions = new Set<string>();
  if (gpuType === "soft") conditions.add("software");
  if (!libraries.some((name) => name.startsWith("libcupti.so"))) conditions.add("no-cupti");
  return conditions;
}
