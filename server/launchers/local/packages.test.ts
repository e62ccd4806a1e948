import { describe, expect, it } from "vitest";
import { parseMetadata } from "./packages.ts";

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
