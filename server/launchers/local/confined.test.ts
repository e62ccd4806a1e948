import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { EgressPolicy } from "#server/contracts/egress.ts";
import { type ConfinedOptions, runConfined } from "./confined.ts";
import { EGRESS_PORT } from "./network.ts";
import { isolation } from "./sandbox.ts";

let stateDir: string;
let writes: string;

beforeAll(async () => {
  stateDir = await mkdtemp(path.join(tmpdir(), "sluice-confined-"));
  writes = path.join(stateDir, "made");
  await mkdir(writes);
  await writeFile(path.join(stateDir, "secret"), "of the installation");
});
afterAll(() => rm(stateDir, { recursive: true, force: true }));

const run = (script: string, options: Partial<ConfinedOptions> = {}) =>
  runConfined(["sh", "-c", script], { stateDir, reads: [], writes, ...options });

it("hands a program the machine's index and no secret, and shows it nothing of the installation", async () => {
  process.env.SLUICE_TEST_SECRET = "broker's";
  process.env.UV_DEFAULT_INDEX ??= "";
  await run(`env > ${writes}/env; touch "$HOME/x" "$UV_CACHE_DIR/y"; cat ${stateDir}/secret > ${writes}/seen || true`);
  delete process.env.SLUICE_TEST_SECRET;
  const seen = await readFile(path.join(writes, "env"), "utf8");
  expect(seen).toContain("UV_DEFAULT_INDEX=");
  expect(seen).not.toMatch(/SLUICE|DATABASE|broker's/);
  expect(seen).toMatch(new RegExp(`^HOME=${stateDir}/proposals/\\.run-`, "m"));
  if (isolation().isolated) expect(await readFile(path.join(writes, "seen"), "utf8")).toBe("");
});

it("ends what takes too much of the disk, and what is called off, with all that it has started", async () => {
  const grows = `dd if=/dev/zero of=${writes}/large bs=1M count=8 2>/dev/null; sleep 100`;
  await expect(run(grows, { maxBytes: 4 * 1024 ** 2 })).rejects.toThrow(/The build takes more than/);
  const mark = `${writes}/late`;
  await expect(run(`(sleep 1; touch ${mark}) & sleep 100`, { signal: AbortSignal.timeout(300) })).rejects.toThrow(
    /abort/,
  );
  await new Promise((resolve) => setTimeout(resolve, 1200));
  await expect(readFile(mark)).rejects.toThrow(/ENOENT/);
});

it.runIf(isolation().isolated)(
  "holds a program to the outgoing network policy that it is given",
  async () => {
    const program = [
      "import http.client",
      `c = http.client.HTTPConnection("127.0.0.1", ${EGRESS_PORT})`,
      'c.request("GET", "http://10.1.2.3/")',
      "print(c.getresponse().read().decode())",
    ].join("\n");
    await writeFile(path.join(writes, "ask.py"), program);
    const python = "/usr/bin/python3";
    const refusalWith = async (egressPolicy?: EgressPolicy) => {
      await run(`${python} ${writes}/ask.py > ${writes}/answer`, { python, ...(egressPolicy && { egressPolicy }) });
      return await readFile(path.join(writes, "answer"), "utf8");
    };
    expect(await refusalWith()).toContain("private address");
    expect(await refusalWith({ mode: "list", allow: ["pypi.org"] })).toContain("not on the list");
    expect(await refusalWith({ mode: "none", allow: [] })).toContain("policy of this team is: none");
  },
  60_000,
);
