import { expect, it } from "vitest";
import { interpreterParts } from "./workspace.ts";

it("copies an interpreter that has a prefix of its own as it is", () => {
  const [whole, ...more] = interpreterParts(
    { basePrefix: "/opt/python", pythonVersion: "3.13" },
    "/opt/python/bin/python3.13",
  );
  expect(whole).toMatchObject({ from: "/opt/python", to: "/opt/python" });
  expect([whole?.only, more]).toEqual([undefined, []]);
});

it("copies Debian's program and its own modules, and nothing else of /usr", () => {
  const debian = { basePrefix: "/usr", pythonVersion: "3.13" };
  const [part, ...more] = interpreterParts(debian, "/usr/bin/python3.13");
  expect(part).toMatchObject({ from: "/usr", to: "/usr", only: ["bin/python3.13", "lib/python3.13"] });
  expect(part?.without).toContain("./lib/python3.*/dist-packages");
  expect(more).toEqual([]);
  // An environment that was made with the name without a minor version leads there.
  expect(interpreterParts(debian, "/usr/bin/python3")[0]?.only).toContain("bin/python3");
});
