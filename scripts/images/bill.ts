/** A bill of materials for each image, as CycloneDX 1.6: what lies in it, in which version, under which licence. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
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
  const byPurl = new Map(components.map((component) => [component.purl, component]));
  const sorted = [...byPurl.values()].sort((a, b) => (a.purl < b.purl ? -1 : 1));
  const document = {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: { type: "container", ...image } },
    components: sorted.map(({ name, version, purl, licence }) => ({
      type: "library",
      "bom-ref": purl,
      name,
      version,
      purl,
      ...(licence === undefined
        ? {}
        : { licenses: [licence.spdx ? { expression: licence.text } : { license: { name: licence.text } }] }),
    })),
  };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

/** Debian's packages below `root`. Their licences stand in files of their own form, which are not read. */
export async function debianPackages(root: string): Promise<Component[]> {
  const text = await readFile(path.join(root, "var/lib/dpkg/status"), "utf8");
  return text.split("\n\n").flatMap((paragraph) => {
    const field = (name: string) => new RegExp(`^${name}: (.+)$`, "m").exec(paragraph)?.[1];
    const [name, version] = [field("Package"), field("Version")];
    if (name === undefined || version === undefined || !/ installed$/m.test(field("Status") ?? "")) return [];
    const purl = `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${field("Architecture") ?? "all"}`;
    return [{ name, version, purl }];
  });
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
