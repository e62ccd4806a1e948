import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { changedSinceVerified, selectSuites, treeWithoutRecord } from "#scripts/test/selection.ts";

const whole = (changed: string[] | undefined) =>
  [...selectSuites(changed)].filter(([, scope]) => scope === "all").map(([name]) => name);

describe("the suites that run whole", () => {
  it("are all without a verified tree", () => {
    expect(whole(undefined)).toEqual(["cluster", "rust", "vitest", "pytest", "playwright"]);
  });

  it("are none when nothing changed", () => {
    expect(whole([])).toEqual([]);
  });

  it.each([
    ["native/gpud/src/main.rs", ["cluster", "rust", "vitest", "pytest", "playwright"]],
    ["native/conformance/tests/bulk.rs", ["rust"]],
    ["native/gpud/tests/all/leases.rs", ["rust"]],
    ["native/python/tests/test_text.py", ["pytest"]],
    ["native/python/sluice_gpu/_magics.py", ["cluster", "vitest", "pytest", "playwright"]],
    ["server/services/cost/close.ts", ["cluster", "vitest", "playwright"]],
    ["server/launchers/kubernetes/objects.ts", ["cluster", "vitest", "playwright"]],
    ["components/lease/pill.tsx", ["cluster", "vitest", "playwright"]],
    ["deploy/helm/sluice/values.yaml", ["cluster", "vitest"]],
    ["e2e/3-pages.e2e.ts", ["vitest", "playwright"]],
    ["scripts/cluster/settings.ts", ["cluster", "vitest"]],
    ["README.md", ["vitest", "pytest"]],
    ["docs/pages/workspaces.png", ["vitest"]],
    ["scripts/start.mjs", ["cluster", "vitest", "playwright"]],
    ["scripts/test/steps/rust.ts", ["cluster", "rust", "vitest", "pytest", "playwright"]],
    ["package-lock.json", ["cluster", "rust", "vitest", "pytest", "playwright"]],
    ["native/conformance/suites/own/suite.json", ["rust", "vitest"]],
    ["native/README.md", []],
  ])("follow from a change of %s", (file, suites) => {
    expect(whole([file])).toEqual(suites);
  });

  it("are all for a file that no suite knows", () => {
    expect(whole(["Makefile"])).toHaveLength(5);
  });
});

describe("the files that differ from the verified tree", () => {
  let root: string;
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=test", "-c", "user.email=test@example.org", ...args], {
      cwd: root,
      encoding: "utf8",
    }).trim();
  const write = (file: string, text: string) => {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    writeFileSync(path.join(root, file), text);
  };
  const verify = (commit = git("rev-parse", "HEAD"), tree = treeWithoutRecord(root, commit)) =>
    write(".ci/verified", JSON.stringify({ tree, commit, date: "2026-01-31", cpu: "test", minutes: 1, passed: 1 }));

  beforeEach(() => {
    root = mkdtempSync(path.join(tmpdir(), "sluice-selection-"));
    git("init", "--quiet");
    write("a.txt", "a");
    git("add", ".");
    git("commit", "--quiet", "--message", "first");
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  it("are none after the record alone was committed", () => {
    verify();
    git("add", ".");
    git("commit", "--quiet", "--message", "record");
    expect(changedSinceVerified(root)).toMatchObject({ changed: [] });
  });

  it("are those of later commits, of the work tree, and new ones", () => {
    verify();
    write("b.txt", "b");
    git("add", ".");
    git("commit", "--quiet", "--message", "second");
    write("a.txt", "changed");
    write("c.txt", "c");
    expect(changedSinceVerified(root)).toMatchObject({ changed: ["a.txt", "b.txt", "c.txt"] });
  });

  it.each([
    ["an option of git", { commit: "-q", tree: "4b825dc642cb6eb9a060e54bf8d69288fbee4904" }],
    ["a short hash", { commit: "1234567", tree: "0".repeat(40) }],
  ])("are unknown for %s in place of a commit", (_, { commit, tree }) => {
    write(".ci/verified", JSON.stringify({ tree, commit, date: "2026-01-31", cpu: "test", minutes: 1, passed: 1 }));
    expect(changedSinceVerified(root)).toEqual({ unknown: ".ci/verified has another form" });
  });

  it("are unknown for a record with the marks of a conflict", () => {
    write(".ci/verified", "<<<<<<< HEAD\n{}");
    expect(changedSinceVerified(root)).toEqual({ unknown: ".ci/verified has another form" });
  });

  it("are unknown without a record, for another tree, and for a commit of another history", () => {
    expect(changedSinceVerified(root)).toEqual({ unknown: ".ci/verified is missing" });
    verify(undefined, "0".repeat(40));
    expect(changedSinceVerified(root)).toEqual({
      unknown: `the tree of ${git("rev-parse", "HEAD").slice(0, 12)} is another`,
    });
    verify("1".repeat(40), "0".repeat(40));
    expect(changedSinceVerified(root)).toEqual({ unknown: "the commit 111111111111 is none of this history" });
  });
});
