/** Downloads of a GPU host: authority, concurrency, and the script in a real shell. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
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

type Run = { program: string; name: string | undefined; fake: Record<string, string>; inside?: string[] };

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
  /** Runs the line in a shell, against a portal that gives out this program. `inside`: what runs the shell. */
  async function run({ program, name, fake, inside = [] }: Run) {
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
    const bin = path.join(home, "fake");
    await mkdir(bin);
    for (const [program, text] of Object.entries(fake)) await writeFile(path.join(bin, program), text, { mode: 0o755 });
    const line = installLine({ portalUrl: `http://127.0.0.1:${port}`, token: bearer, name });
    const env = { PATH: `${bin}:${process.env.PATH}`, HOME: home, NODE_ENV: "test" as const };
    const [first = "sh", ...rest] = [...inside, "sh", "-c", line];
    const ran = await promisify(execFile)(first, rest, { env, cwd: home }).then(
      ({ stdout }) => ({ failed: false, text: stdout }),
      (error: { stdout: string; stderr: string }) => ({ failed: true, text: `${error.stdout}${error.stderr}` }),
    );
    portal.close();
    return { ...ran, home, bearer, asked };
  }

  /** As an ordinary user: nothing outside the home is written. */
  const asUser = async (program: string, name?: string) =>
    await run({ program, name, fake: { id: "#!/bin/sh\necho 1000\n" } });

  /**
   * As root of a namespace in which the folders that the script writes to lie below the home. `systemd`: whether the
   * host runs it. `systemctl` records its arguments and, as systemd would, starts nothing before the service exists.
   */
  const asRoot = async (name: string, { systemd }: { systemd: boolean }) => {
    const folders = { etc: "/etc", run: "/run", lib: "/var/lib", bin: "/usr/local/bin" };
    const enter = [
      ...["set -e", "mkdir -p root/etc/systemd/system root/run root/lib root/bin"],
      ...(systemd ? ["mkdir -p root/run/systemd/system"] : []),
      ...Object.entries(folders).map(([from, to]) => `mount --bind root/${from} ${to}`),
      'exec "$@"',
    ].join("\n");
    const systemctl =
      '#!/bin/sh\ntest -s /etc/systemd/system/sluice-gpud.service || exit 1\necho "$@" >> "$HOME/systemctl"\n';
    const inside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", enter, "sh"];
    const ran = await run({ program: PROGRAM, name, inside, fake: { systemctl } });
    const read = async (file: string) => await readFile(path.join(ran.home, file), "utf8");
    return { ...ran, read };
  };

  it.runIf(arch() === "x64" || arch() === "arm64")(
    "downloads gpud with the token, and starts it with the token in a file",
    async () => {
      const { failed, text, home, bearer, asked } = await asUser(PROGRAM, "gpu-7");
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

  it("installs and starts a service as root on a host with systemd", async () => {
    const { failed, text, read, home, bearer } = await asRoot("gpu-7", { systemd: true });
    expect([failed, text]).toEqual([false, "gpud runs as sluice-gpud.service. Its log: journalctl -u sluice-gpud\n"]);
    const words = ["join", "https://broker.example.org", "--token-file", "/var/lib/sluice-gpud/join-token"];
    const quotedWords = [...words, "--state", "/var/lib/sluice-gpud", "--name", "gpu-7"].map((word) => `"${word}"`);
    expect(await read("root/etc/systemd/system/sluice-gpud.service")).toBe(
      "[Unit]\nDescription=Sluice GPU server\nWants=network-online.target\nAfter=network-online.target\n\n" +
        `[Service]\nExecStart=/usr/local/bin/gpud ${quotedWords.join(" ")}\nRestart=on-failure\nRestartSec=5\n\n` +
        "[Install]\nWantedBy=multi-user.target\n",
    );
    expect((await stat(path.join(home, "root/etc/systemd/system/sluice-gpud.service"))).mode & 0o777).toBe(0o644);
    expect(await read("systemctl")).toBe("daemon-reload\nenable --now sluice-gpud.service\n");
    expect(await read("root/bin/gpud")).toBe(PROGRAM);
    expect((await stat(path.join(home, "root/bin/gpud"))).mode & 0o777).toBe(0o755);
    expect(await read("root/lib/sluice-gpud/join-token")).toBe(bearer);
    expect((await stat(path.join(home, "root/lib/sluice-gpud/join-token"))).mode & 0o077).toBe(0);
    expect(await readdir(path.join(home, "root/lib/sluice-gpud"))).toEqual(["join-token"]);
  });

  it("starts gpud in the terminal as root on a host without systemd", async () => {
    const { failed, text, read } = await asRoot("gpu-7", { systemd: false });
    expect(failed).toBe(false);
    expect(text).toContain(
      "gpud runs until this terminal ends. Start it again: /usr/local/bin/gpud --state /var/lib/sluice-gpud\n<join>\n",
    );
    await expect(read("systemctl")).rejects.toThrow("ENOENT");
    await expect(read("root/etc/systemd/system/sluice-gpud.service")).rejects.toThrow("ENOENT");
  });

  it("installs no program with a different checksum", async () => {
    const { failed, text, home } = await asUser("#!/bin/sh\necho evil\n");
    expect(failed).toBe(true);
    expect(text).toContain(`checksum of the downloaded gpud is not ${sha256}. Nothing was installed.`);
    expect(text).not.toContain("evil");
    await expect(readFile(path.join(home, ".local/bin/gpud"))).rejects.toThrow("ENOENT");
  });

  it("refuses a name with shell syntax", async () => {
    const { failed, text } = await asUser(PROGRAM, "a'; touch /tmp/sluice-owned; '");
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

  it("names the values of the chart for an address inside its cluster", () => {
    expect(
      localWarning({
        ...{ SLUICE_BROKER_URL: "https://sluice-broker.lab.svc:3001", SLUICE_PORTAL_URL: "https://sluice.example.org" },
      }),
    ).toBe(
      "Only the cluster reaches https://sluice-broker.lab.svc:3001. For a GPU server elsewhere, set broker.url and " +
        "broker.tls.existingSecret in the chart's values.",
    );
  });
});
