/** What a built environment holds, by its packages' own metadata. */
import { readdir } from "node:fs/promises";
import path from "node:path";
import type { PackageView } from "#server/contracts/image.ts";
import { compareNames } from "#server/contracts/names.ts";
import { readBeginning } from "./read-beginning.ts";

/** A package as it describes itself; `spdx`: its licence is an expression of SPDX. */
export type Described = PackageView & { spdx: boolean };

/** The packages of a build, by name. */
export async function readPackages(stateDir: string, name: string, hash: string): Promise<PackageView[]> {
  const lib = path.join(stateDir, "environments", `${name}-${hash}`, "lib");
  const pythons = (await readdir(lib)).filter((each) => /^python3\.\d+$/.test(each));
  const described = await Promise.all(pythons.map((python) => packagesIn(path.join(lib, python, "site-packages"))));
  return described
    .flat()
    .map(withoutSpdx)
    .sort((a, b) => compareNames(a.name, b.name));
}

/** What is read of a package's metadata: its headers come first, its description may have any length. */
const MOST_METADATA_BYTES = 1024 * 1024;
/** Packages of one folder that are read. The largest environments have some hundreds; a hostile one has any number. */
const MOST_PACKAGES = 5_000;

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

function read(text: string): Described | undefined {
  const [head = ""] = text.split(/\r?\n\r?\n/, 1);
  // A value may go on in lines that are indented.
  const lines = head.split(/\r?\n(?![ \t])/);
  const all = (field: string) =>
    lines
      .filter((line) => line.toLowerCase().startsWith(`${field.toLowerCase()}:`))
      .map((line) => line.slice(field.length + 1).trim());
  const [name] = all("Name");
  const [version] = all("Version");
  if (name === undefined || version === undefined) return undefined;
  if (name.length > LONGEST_WORD || version.length > LONGEST_WORD) return undefined;
  const expression = all("License-Expression")[0] ?? "";
  const licence = (expression || licenceOf(all))?.slice(0, LONGEST_LICENCE) ?? null;
  return { name, version, licence, spdx: expression !== "" };
}

/** Maximum characters of a name or a version, and of what is shown of a licence. */
const LONGEST_WORD = 200;
const LONGEST_LICENCE = 1000;

const CLASSIFIER = /^License :: (?:OSI Approved :: )?(?!OSI Approved$)(.+)$/;
/** A whole licence text stands in some packages where its name should be. */
const LONGEST_NAME = 80;

function licenceOf(all: (field: string) => string[]): string | null {
  const classified = all("Classifier").flatMap((each) => CLASSIFIER.exec(each)?.[1] ?? []);
  if (classified.length > 0) return classified.join("; ");
  const [told = ""] = (all("License")[0] ?? "").split(/\r?\n/);
  return told === "" || told === "UNKNOWN" || told.length > LONGEST_NAME ? null : told;
}
