import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { mkdir, mkdtemp, open, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { packagesIn, parseMetadata } from "./packages.ts";

const packageWith = (...lines: string[]) =>
  ["Metadata-Version: 2.4", "Name: probe", "Version: 1.2", ...lines, "", "License-Expression: in the description"].join(
    "\n",
  );
const licence = (...lines: string[]) => parseMetadata(packageWith(...lines))?.licence;

describe("a package's licence", () => {
  it("is its expression, else what it is classified as, else what it tells", () => {
    const classifier = "Classifier: License :: OSI Approved :: MIT License";
    expect(licence("License-Expression: BSD-3-Clause", classifier)).toBe("BSD-3-Clause");
    expect(licence("License: see file", classifier, "Classifier: License :: Other/Proprietary License")).toBe(
      "MIT License; Other/Proprietary License",
    );
    expect(licence("Classifier: License :: OSI Approved", "License: Apache 2.0")).toBe("Apache 2.0");
  });

  it("is unknown where a package does not tell it, or gives a whole text instead", () => {
    expect(licence()).toBeNull();
    expect(licence("License: UNKNOWN")).toBeNull();
    expect(licence(`License: ${"Permission is hereby granted ".repeat(5)}`)).toBeNull();
    expect(licence("License: MIT License\n        Copyright of its authors")).toBe("MIT License");
  });

  it("needs a package with a name and a version", () => {
    expect(parseMetadata("Name: probe\n\nVersion: 1")).toBeUndefined();
    expect(parseMetadata(packageWith())).toEqual({ name: "probe", version: "1.2", licence: null });
  });
});

describe("packages of a hostile proposal", () => {
  const folders: string[] = [];
  afterEach(async () => {
    for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
  });

  it("are read up to 128 KiB of metadata each, without links, pipes and endless names", {
    timeout: 20_000,
  }, async () => {
    const site = await mkdtemp(path.join(tmpdir(), "sluice-site-"));
    folders.push(site);
    const at = async (name: string) => {
      await mkdir(path.join(site, `${name}.dist-info`));
      return path.join(site, `${name}.dist-info`, "METADATA");
    };
    const head = (name: string) => `Metadata-Version: 2.4\nName: ${name}\nVersion: 1\n`;
    const large = await open(await at("large"), "w");
    await large.write(`${head("large")}License: MIT\n\n`);
    // 500 GB that take no disk: nobody can read them whole.
    await large.truncate(500e9);
    await large.close();
    await writeFile(await at("late"), `${"X: y\n".repeat(300_000)}${head("late")}\n`);
    await writeFile(await at("endless"), `${head("n".repeat(10_000))}\n`);
    await writeFile(path.join(site, "elsewhere"), `${head("linked")}\n`);
    await symlink(path.join(site, "elsewhere"), await at("linked"));
    expect(spawnSync("mkfifo", [await at("pipe")]).status).toBe(0);
    expect(await packagesIn(site)).toEqual([{ name: "large", version: "1", licence: "MIT", spdx: false }]);
  });

  it("are read in bounded number", { timeout: 30_000 }, async () => {
    const site = await mkdtemp(path.join(tmpdir(), "sluice-site-"));
    folders.push(site);
    for (let n = 0; n < 2_050; n++) {
      const info = path.join(site, `p${n}-1.dist-info`);
      mkdirSync(info);
      writeFileSync(path.join(info, "METADATA"), `Name: p${n}\nVersion: 1\n`);
    }
    expect(await packagesIn(site)).toHaveLength(2_000);
  });
});
