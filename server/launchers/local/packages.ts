/** What a built environment holds, by its packages' own metadata. */
import { readdir } from "node:fs/promises";
import path from "node:path";
import type { PackageView } from "#server/contracts/image.ts";
import { compareNames } from "#server/contracts/names.ts";
import { readBeginning } from "./read-beginning.ts";

/** A package as it describes itself; `spdx`: its licence is an expression of SPDX. */
export type Described = PackageView & { spdx: boolean };

/** The packages of a build for this version of Python, such as `3.12`, by name. */
export async function readPackages(folder: string, pythonVersion: string): Promise<PackageView[]> {
  const described = await packagesIn(path.join(folder, "lib", `python${pythonVersion}`, "site-packages"));
  return described.map(withoutSpdx).sort((a, b) => compareNames(a.name, b.name));
}

/** What is read of a package's metadata: its headers come first, its description may have any length. */
const MOST_METADATA_BYTES = 128 * 1024;
/** Packages of one folder that are read. The largest environments have some hundreds; a hostile one has any number. */
const MOST_PACKAGES = 2_000;

/** The packages of one `site-packages`. */
export async function packagesIn(site: string): Promise<Described[]> {
  const packages: Described[] = [];
  const found = await readdir(site, { withFileTypes: true }).catch(() => []);
  // Not through links, which may lead out of the build.
  const folders = found.filter((each) => each.isDirectory() && each.name.endsWith(".dist-info"));
  for (const folder of folders.slice(0, MOST_PACKAGES)) {
    const metadata = await readBeginning(path.join(site, folder.name, "METADATA"), MOST_METADATA_BYTES);
    const described = metadata === undefined ? undefined : read(metadata.replaceAll("\0", ""));
    if (described !== undefined) packages.push(described);
  }
  return packages;
}

/** Core metadata (PyPA specifications, "Core metadata"): headers up to the first empty line. */
export function parseMetadata(text: string): PackageView | undefined {
  const described = read(text);
  return described && withoutSpdx(described);
}

function withoutSpdx({ name, version, licence }: Described): PackageView {
  return { name, version, licence };
}

const FIELDS = ["Name", "Version", "License-Expression", "License", "Classifier"] as const;
type Field = (typeof FIELDS)[number];
const fieldOf = new Map<string, Field>(FIELDS.map((field) => [field.toLowerCase(), field]));

/** The values of the fields above, in one pass: a hostile package has tens of thousands of lines. */
function headersOf(text: string): (field: Field) => string[] {
  const [head = ""] = text.split(/\r?\n\r?\n/, 1);
  const values = new Map<Field, string[]>();
  // A value may go on in lines that are indented.
  for (const line of head.split(/\r?\n(?![ \t])/)) {
    const colon = line.indexOf(":");
    const field = fieldOf.get(line.slice(0, Math.max(0, colon)).toLowerCase());
    if (field !== undefined)
      values.set(field, [...(values.get(field) ?? []), line.slice(colon + 1).trim()].slice(0, MOST_VALUES));
  }
  return (field) => values.get(field) ?? [];
}

function read(text: string): Described | undefined {
  const all = headersOf(text);
  const [name] = all("Name");
  const [version] = all("Version");
  if (name === undefined || version === undefined) return undefined;
  if (name.length > LONGEST_WORD || version.length > LONGEST_WORD) return undefined;
  const expression = all("License-Expression")[0] ?? "";
  const licence = (expression || licenceOf(all))?.slice(0, LONGEST_LICENCE) ?? null;
  return { name, version, licence, spdx: expression !== "" };
}

/** Values that are kept of one field: of classifiers, some dozens are usual. */
const MOST_VALUES = 200;
/** Maximum characters of a name or a version, and of what is shown of a licence. */
const LONGEST_WORD = 200;
const LONGEST_LICENCE = 1000;

const CLASSIFIER = /^License :: (?:OSI Approved :: )?(?!OSI Approved$)(.+)$/;
/** A whole licence text stands in some packages where its name should be. */
const LONGEST_NAME = 80;

function licenceOf(all: (field: Field) => string[]): string | null {
  const classified = all("Classifier").flatMap((each) => CLASSIFIER.exec(each)?.[1] ?? []);
  if (classified.length > 0) return classified.join("; ");
  const [told = ""] = (all("License")[0] ?? "").split(/\r?\n/);
  return told === "" || told === "UNKNOWN" || told.length > LONGEST_NAME ? null : told;
}
