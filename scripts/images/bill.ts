/** A bill of materials for each image, as CycloneDX 1.6: what lies in it, in which version, under which licence. */
import { execFile } from "node:child_process";
import { readFile, readlink } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { packagesIn } from "#server/launchers/local/packages.ts";

/** One package in an image. */
export type Component = {
  name: string;
  version: string;
  /** Package URL, which says where it comes from: `pkg:npm/next@16.0.0`. */
  purl: string;
  /** As the package states it; `spdx` where that is an expression of SPDX by the rules of where it comes from. */
  licence?: { text: string; spdx: boolean };
};

/** The document, sorted, so that the same image has the same one. */
export function bill(image: { name: string; version: string }, components: readonly Component[]): string {
  return written({ type: "container", ...image }, components.map(entry));
}

/** A document of ours with more packages in it. */
export function withPackages(document: string, more: readonly Component[]): string {
  const { metadata, components } = JSON.parse(document) as { metadata: { component: object }; components: Entry[] };
  return written(metadata.component, [...components, ...more.map(entry)]);
}

type Entry = { "bom-ref": string } & Record<string, unknown>;

function entry({ name, version, purl, licence }: Component): Entry {
  const said = licence && [licence.spdx ? { expression: licence.text } : { license: { name: licence.text } }];
  return { type: "library", "bom-ref": purl, name, version, purl, ...(said && { licenses: said }) };
}

function written(component: object, entries: readonly Entry[]): string {
  const byPurl = new Map(entries.map((one) => [one["bom-ref"], one]));
  const components = [...byPurl.values()].sort((a, b) => (a["bom-ref"] < b["bom-ref"] ? -1 : 1));
  const document = { bomFormat: "CycloneDX", specVersion: "1.6", version: 1, metadata: { component }, components };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

/** Debian's packages below `root`, with the licences that their files of copyright name. */
export async function debianPackages(root: string): Promise<Component[]> {
  const text = await readFile(path.join(root, "var/lib/dpkg/status"), "utf8");
  const components = text.split("\n\n").map(async (paragraph): Promise<Component[]> => {
    const field = (name: string) => new RegExp(`^${name}: (.+)$`, "m").exec(paragraph)?.[1];
    const [name, version] = [field("Package"), field("Version")];
    if (name === undefined || version === undefined || !/ installed$/m.test(field("Status") ?? "")) return [];
    const purl = `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${field("Architecture") ?? "all"}`;
    const licences = debianLicences(await copyrightOf(root, name));
    const licence = licences.length === 0 ? {} : { licence: { text: licences.join(" and "), spdx: false } };
    return [{ name, version, purl, ...licence }];
  });
  return (await Promise.all(components)).flat();
}

/** A package's folder of documents may lead to that of the package that it was built with. */
async function copyrightOf(root: string, name: string): Promise<string> {
  const folder = path.join(root, "usr/share/doc", name);
  const target = await readlink(folder).catch(() => undefined);
  const found = target === undefined ? folder : path.resolve(path.dirname(folder), target);
  return await readFile(path.join(found, "copyright"), "utf8").catch(() => "");
}

/**
 * The licences that a file of copyright names, by Debian's words for them: the short names of its fields where it has
 * those (https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/), else the common licences that it refers to,
 * else those of GNU that its prose names.
 */
export function debianLicences(text: string): string[] {
  const fields = /^Format: *\S*copyright-format/im.test(text)
    ? [...text.matchAll(/^License: *(\S.*)$/gim)].map(([, name = ""]) => name.trim())
    : [];
  const common = [...text.matchAll(/\/usr\/share\/common-licenses\/([\w.+-]*\w)/g)].map(([, name = ""]) => name);
  const prose = [...text.matchAll(/GNU (Lesser )?General\s+Public\s+License/g)].map(([, l]) => (l ? "LGPL" : "GPL"));
  const [found = []] = [fields, common, prose].filter((names) => names.length > 0);
  return [...new Set(found)].sort();
}

/** The npm packages that lie in these folders. */
export async function npmPackages(folders: readonly string[]): Promise<Component[]> {
  return await Promise.all(
    folders.map(async (folder) => {
      const file = await readFile(path.join(folder, "package.json"), "utf8");
      const { name, version, license } = JSON.parse(file) as { name: string; version: string; license?: unknown };
      const licence =
        typeof license === "string" ? { text: license, spdx: !/^SEE |^UNLICENSED$/.test(license) } : undefined;
      return { name, version, purl: `pkg:npm/${name.replace("@", "%40")}@${version}`, ...(licence && { licence }) };
    }),
  );
}

/** The Python packages of an environment, by what they say of themselves. */
export async function pythonPackages(sitePackages: string): Promise<Component[]> {
  return (await packagesIn(sitePackages)).map(({ name: written, version, licence: text, spdx }) => {
    const name = written.toLowerCase().replaceAll(/[-_.]+/g, "-");
    return {
      name,
      version,
      purl: `pkg:pypi/${name}@${version}`,
      ...(text === null ? {} : { licence: { text, spdx } }),
    };
  });
}

/** The crates that are linked into these packages of `native/`. */
export async function crates(root: string, packages: readonly string[]): Promise<Component[]> {
  const words = packages.flatMap((name) => ["-p", name]);
  const { stdout } = await promisify(execFile)(
    "cargo",
    [
      "tree",
      "--locked",
      "--offline",
      "--edges",
      "normal",
      "--prefix",
      "none",
      "--no-dedupe",
      ...words,
      "--format",
      "{p}\t{l}",
    ],
    { cwd: path.join(root, "native"), maxBuffer: 1 << 26 },
  );
  return stdout.split("\n").flatMap((line) => {
    const [, name, version, licence] = /^(\S+) v(\S+)(?: \(.*\))?\t(.*)$/.exec(line) ?? [];
    if (name === undefined || version === undefined) return [];
    // Older crates write "MIT/Apache-2.0".
    const spdx = licence ? { licence: { text: licence.replaceAll("/", " OR "), spdx: true } } : {};
    return [{ name, version, purl: `pkg:cargo/${name}@${version}`, ...spdx }];
  });
}
