import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, it } from "vitest";
import { bill, debianLicences, debianPackages, npmPackages, pythonPackages, withPackages } from "./bill.ts";

it("names each npm package once, with its version and licence", async () => {
  const folders = ["next", "@kubernetes/client-node", "next"].map((name) => path.resolve("node_modules", name));
  const document = JSON.parse(bill({ name: "sluice-test", version: "1" }, await npmPackages(folders))) as {
    components: { purl: string; licenses: unknown }[];
  };
  expect(document.components.map(({ purl }) => purl.replace(/@[\d.]+$/, ""))).toEqual([
    "pkg:npm/%40kubernetes/client-node",
    "pkg:npm/next",
  ]);
  expect(document.components.map(({ licenses }) => licenses)).toEqual([
    [{ expression: "Apache-2.0" }],
    [{ expression: "MIT" }],
  ]);
});

it("reads what Debian and Python packages say of themselves", async () => {
  const root = await mkdtemp(path.join(tmpdir(), "sluice-bill-"));
  const write = async (name: string, lines: string[]) => {
    await mkdir(path.dirname(path.join(root, name)), { recursive: true });
    await writeFile(path.join(root, name), lines.join("\n"));
  };
  try {
    await write("var/lib/dpkg/status", [
      ...["Package: zlib1g", "Status: install ok installed", "Architecture: amd64", "Version: 1:1.2.13", ""],
      ...["Package: libz", "Status: install ok installed", "Architecture: amd64", "Version: 2", ""],
      ...["Package: gone", "Status: deinstall ok config-files", "Architecture: amd64", "Version: 1", ""],
    ]);
    await write("usr/share/doc/zlib1g/copyright", [
      "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/",
      ...["", "Files: *", "License: Zlib", " As is.", "", "Files: debian/*", "License: GPL-2+", "", "License: Zlib"],
    ]);
    await symlink("zlib1g", path.join(root, "usr/share/doc/libz"));
    await write("One_Two-1.0.dist-info/METADATA", [
      "Name: One_Two",
      "Version: 1.0",
      "License-Expression: MIT",
      "",
      "Body",
    ]);
    await write("three-2.dist-info/METADATA", [
      ...["Name: three", "Version: 2", "Classifier: License :: OSI Approved :: BSD License", "", "License: not this"],
    ]);
    expect(await debianPackages(root)).toEqual([
      {
        ...{ name: "zlib1g", version: "1:1.2.13", purl: "pkg:deb/debian/zlib1g@1%3A1.2.13?arch=amd64" },
        licence: { text: "GPL-2+ and Zlib", spdx: false },
      },
      {
        ...{ name: "libz", version: "2", purl: "pkg:deb/debian/libz@2?arch=amd64" },
        licence: { text: "GPL-2+ and Zlib", spdx: false },
      },
    ]);
    const python = await pythonPackages(root);
    expect(python.sort((a, b) => (a.name < b.name ? -1 : 1)).map(({ purl, licence }) => [purl, licence])).toEqual([
      ["pkg:pypi/one-two@1.0", { text: "MIT", spdx: true }],
      ["pkg:pypi/three@2", { text: "BSD License", spdx: false }],
    ]);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});

it("takes the licences that a file of copyright refers to, or names, where it has no fields", () => {
  const text =
    "License: this is prose\nsee /usr/share/common-licenses/GPL-2.\nand `/usr/share/common-licenses/LGPL-2.1'.";
  expect(debianLicences(text)).toEqual(["GPL-2", "LGPL-2.1"]);
  expect(debianLicences("The GNU Lesser General Public\nLicense, version 2.1")).toEqual(["LGPL"]);
  expect(debianLicences("Do as you like.")).toEqual([]);
});

it("adds the packages of another base to a bill of layers, each once", () => {
  const one = { name: "a", version: "1", purl: "pkg:deb/debian/a@1" };
  const document = bill({ name: "sluice-test", version: "1" }, [{ ...one, name: "b", purl: "pkg:npm/b@1" }]);
  const both = JSON.parse(withPackages(withPackages(document, [one]), [one])) as {
    metadata: { component: { name: string } };
    components: { purl: string }[];
  };
  expect(both.components.map(({ purl }) => purl)).toEqual([one.purl, "pkg:npm/b@1"]);
  expect(both.metadata.component.name).toBe("sluice-test");
});
