/** Downloads of a GPU host: authority, concurrency, and the script in a real shell. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { arch, tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { makeWorld, type World } from "#server/services/testing.ts";
import { createJoinToken, localWarning } from "./create-join-token.ts";
import { install } from "./install.ts";
import { installLine, installScript } from "./install-script.ts";
import { join } from "./join.ts";

/** A stand-in for gpud that prints its arguments. */
const PROGRAM = '#!/bin/sh\nfor word in "$@"; do echo "<$word>"; done\n';
const sha256 = createHash("sha256").update(PROGRAM).digest("hex");

let test: TestDatabase;
let world: World;
let folder: string;

beforeAll(async () => {
  test = await useTestDatabase();
  world = await makeWorld(test.db);
  folder = await mkdtemp(path.join(tmpdir(), "sluice-install-"));
  await mkdir(path.join(folder, "native/target/release"), { recursive: true });
  await writeFile(path.join(folder, "native/target/release/gpud"), PROGRAM);
});
afterAll(async () => {
  await test.drop();
  await rm(folder, { recursive: true });
});

const token = async () => (await createJoinToken(world.admin.ctx)).token;
const get = (file: "script" | "gpud", bearer: string) =>
  install(world.system, { file, authorization: `Bearer ${bearer}` }, folder);

describe("the download of gpud", () => {
  it("needs an unused join token", async () => {
    const good = await token();
    expect(await (await get("gpud", good)).text()).toBe(PROGRAM);
    expect(await (await get("script", good)).text()).toContain(sha256);
    for (const bad of ["", `slj_${"a".repeat(43)}`, good.replace("slj_", "slp_")]) {
      await expect(get("gpud", bad)).rejects.toMatchObject({ code: "forbidden" });
    }
    await join(world.system, { token: good, publicKey: "A".repeat(43), name: "gpu-9" });
    await expect(get("gpud", good)).rejects.toMatchObject({ code: "forbidden" });
  });

  it("is refused while too many hosts download, and allowed after these end", async () => {
    const large = path.join(folder, "large");
    await mkdir(path.join(large, "native/target/release"), { recursive: true });
    await writeFile(path.join(large, "native/target/release/gpud"), Buffer.alloc(4 << 20));
    const authorization = `Bearer ${await token()}`;
    const download = async () => await install(world.system, { file: "gpud", authorization }, large);
    const [first, ...others] = await Promise.all([download(), download(), download(), download()]);
    await expect(download()).rejects.toMatchObject({ code: "too-many" });
    // One is read to its end, and the others' hosts go away.
    expect((await first.arrayBuffer()).byteLength).toBe(4 << 20);
    await Promise.all(others.map(async (response) => await response.body?.cancel()));
    await expect.poll(async () => (await (await download()).arrayBuffer()).byteLength).toBe(4 << 20);
  });

  it("is not found if gpud is not built", async () => {
    const elsewhere = install(world.system, { file: "gpud", authorization: `Bearer ${await token()}` }, "/nowhere");
    await expect(elsewhere).rejects.toMatchObject({ code: "not-found" });
  });
});

describe("the line for the GPU host", () => {
  /** Runs the line in a shell, against a portal that gives out this program. */
  async function run(program: string, name?: string) {
    const home = await mkdtemp(path.join(folder, "home-"));
    const bearer = await token();
    const asked: (string | undefined)[] = [];
    const portal = createServer((request, response) => {
      asked.push(request.headers.authorization);
      const { port } = portal.address() as { port: number };
      const portalUrl = `http://127.0.0.1:${port}/`;
      const script = installScript({ portalUrl, brokerUrl: "https://broker.example.org/", token: bearer, sha256 });
      response.end(request.url?.endsWith("file=script") ? script : program);
    });
    await new Promise<void>((resolve) => portal.listen(0, "127.0.0.1", resolve));
    const { port } = portal.address() as { port: number };
    // As an ordinary user: nothing outside the home is written.
    const bin = path.join(home, "fake");
    await mkdir(bin);
    await writeFile(path.join(bin, "id"), "#!/bin/sh\necho 1000\n");
    await chmod(path.join(bin, "id"), 0o755);
    const line = installLine({ portalUrl: `http://127.0.0.1:${port}`, token: bearer, name });
    const env = { PATH: `${bin}:${process.env.PATH}`, HOME: home, NODE_ENV: "test" as const };
    const ran = await promisify(execFile)("sh", ["-c", line], { env }).then(
      ({ stdout }) => ({ failed: false, text: stdout }),
      (error: { stdout: string; stderr: string }) => ({ failed: true, text: `${error.stdout}${error.stderr}` }),
    );
    portal.close();
    return { ...ran, home, bearer, asked };
  }

  it.runIf(arch() === "x64" || arch() === "arm64")(
    "downloads gpud with the token, and starts it with the token in a file",
    async () => {
      const { failed, text, home, bearer, asked } = await run(PROGRAM, "gpu-7");
      const state = path.join(home, ".local/state/sluice-gpud");
      expect([failed, text]).toEqual([
        false,
        `gpud runs until this terminal ends. Start it again: ${home}/.local/bin/gpud --state ${state}\n` +
          `<join>\n<https://broker.example.org>\n<--token-file>\n<${state}/join-token>\n<--state>\n<${state}>\n` +
          "<--name>\n<gpu-7>\n",
      ]);
      expect(await readFile(path.join(state, "join-token"), "utf8")).toBe(bearer);
      expect(asked).toEqual([`Bearer ${bearer}`, `Bearer ${bearer}`]);
    },
  );

  it("installs no program with a different checksum", async () => {
    const { failed, text, home } = await run("#!/bin/sh\necho evil\n");
    expect(failed).toBe(true);
    expect(text).toContain(`checksum of the downloaded gpud is not ${sha256}. Nothing was installed.`);
    expect(text).not.toContain("evil");
    await expect(readFile(path.join(home, ".local/bin/gpud"))).rejects.toThrow("ENOENT");
  });

  it("refuses a name with shell syntax", async () => {
    const { failed, text } = await run(PROGRAM, "a'; touch /tmp/sluice-owned; '");
    expect([failed, text]).toEqual([true, expect.stringContaining("A server name may have letters")]);
  });
});

describe("the warning", () => {
  it("names each setting with an address of this machine only", () => {
    expect(
      localWarning({ SLUICE_BROKER_URL: "http://127.0.0.1:3001/", SLUICE_PORTAL_URL: "http://localhost:3000/" }),
    ).toBe(
      "Only this machine reaches http://127.0.0.1:3001 and http://localhost:3000. For a GPU server elsewhere, set " +
        "SLUICE_BROKER_URL and SLUICE_PORTAL_URL to an address that it reaches.",
    );
    expect(localWarning({ SLUICE_BROKER_URL: "https://broker.example.org" })).toBeNull();
  });
});
