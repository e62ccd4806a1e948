import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { expect, test } from "vitest";

test("every relative link in the papers leads somewhere", async () => {
  const papers = [
    ...["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"],
    ...(await readdir("docs")).filter((name) => name.endsWith(".md")).map((name) => path.join("docs", name)),
  ];
  const dead: string[] = [];
  for (const paper of papers) {
    const text = await readFile(paper, "utf8");
    for (const [, target] of text.matchAll(/\]\(([^)#\s]+)[^)]*\)/g)) {
      if (target === undefined || /^[a-z]+:/.test(target)) continue;
      if (!existsSync(path.join(path.dirname(paper), target))) dead.push(`${paper}: ${target}`);
    }
  }
  expect(dead).toEqual([]);
});
