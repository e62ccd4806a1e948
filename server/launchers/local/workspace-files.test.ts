/** What a workspace's programs leave behind, for a launcher without root's rights. */
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { newId } from "#server/ids.ts";
import { workspacePaths } from "./workspace-files.ts";

let stateDir: string;
beforeEach(async () => {
  stateDir = await mkdtemp(path.join(tmpdir(), "sluice-files-"));
});
afterEach(async () => {
  execFileSync("chmod", ["-R", "u+rwX", stateDir]);
  await rm(stateDir, { recursive: true });
});

/** Runs the work as another user if the test runs as root: modes of folders do not stop root. */
function asNobody(program: string): void {
  const isRoot = process.getuid?.() === 0;
  const node = [process.execPath, "--input-type=module", "--eval", program];
  const [command = "", ...args] = isRoot
    ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", ...node]
    : node;
  if (isRoot) execFileSync("chown", ["-R", "65534:65534", stateDir]);
  execFileSync(command, args, { cwd: path.resolve(import.meta.dirname, "..", "..", ".."), stdio: "pipe" });
}

it("starts again after a build has left a folder that nobody may write to in /var/tmp", async () => {
  const id = newId("ws");
  const paths = workspacePaths(stateDir, id);
  const left = path.join(paths.tmp, "build", "inner");
  await mkdir(left, { recursive: true });
  await writeFile(path.join(left, "object.o"), "");
  await chmod(left, 0o500);
  await chmod(path.dirname(left), 0o500);
  const environment = path.join(stateDir, "environment");
  await mkdir(path.join(environment, "bin"), { recursive: true });
  asNobody(`
    import { hostLayout, prepareFiles, workspacePaths } from ${JSON.stringify(path.join(import.meta.dirname, "workspace-files.ts"))};
    const paths = workspacePaths(${JSON.stringify(stateDir)}, ${JSON.stringify(id)});
    const python = { pythonVersion: "3.11", basePrefix: "/usr", interpreter: "/usr/bin/python3" };
    const environment = { path: ${JSON.stringify(environment)}, hash: "0", env: {}, ...python };
    const layout = hostLayout(paths, environment);
    await prepareFiles({ paths, layout, environment, credential: "secret", insideUid: 1000, links: [] });
  `);
  expect(readdirSync(paths.tmp)).toEqual([]);
}, 120_000);
