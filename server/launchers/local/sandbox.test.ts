import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { insideLayout } from "#server/launchers/layout.ts";
import { type Mount, probeSandbox, sandboxCommand, workspaceUid } from "./sandbox.ts";

const folder = mkdtempSync(path.join(tmpdir(), "sluice-sandbox-"));
chmodSync(folder, 0o777);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const isRoot = process.getuid?.() === 0;
const LOOK =
  "id -u; grep -E '^(CapPrm|CapEff|CapAmb|NoNewPrivs)' /proc/self/status; ls /; test -w /usr && echo writable; test -e /dev/nvidiactl && echo nvidiactl; true";

const CONNECT = `import socket
socket.socket(socket.AF_UNIX).connect("${insideLayout.gpuds}/gpud.sock")
print("connected")`;

/** Runs the look around in a sandbox, as nobody when we are root and shall not be. */
function look(mode: { asRoot: boolean; userNamespace: boolean }, { what = LOOK, mounts = [] as Mount[] } = {}): string {
  const root = mkdtempSync(path.join(folder, "root-"));
  chmodSync(root, 0o777);
  // Nobody cannot read a checkout below /root.
  const script = path.join(folder, "sandbox.sh");
  copyFileSync(path.join(import.meta.dirname, "sandbox.sh"), script);
  chmodSync(script, 0o755);
  const command = sandboxCommand({ mode, root, uid: workspaceUid("look"), mounts, command: ["sh", "-c", what] });
  const [program = "", ...args] = command.map((word) => (word.endsWith("/sandbox.sh") ? script : word));
  const asNobody = isRoot && !mode.asRoot ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : [];
  const [first = program, ...rest] = [...asNobody, program, ...args];
  return execFileSync(first, rest, { encoding: "utf8", timeout: 20_000, cwd: "/" });
}

describe.runIf(probeSandbox().mode !== undefined)("the sandbox", () => {
  const modes = [...(isRoot ? [{ asRoot: true, userNamespace: true }] : []), { asRoot: false, userNamespace: true }];
  it.each(modes)("leaves no privilege and shows only the system (%o)", (mode) => {
    const [uid, ...lines] = look(mode).trim().split("\n");
    expect(uid).toBe("1000");
    expect(lines).toContain("CapPrm:\t0000000000000000");
    expect(lines).toContain("CapEff:\t0000000000000000");
    expect(lines).toContain("CapAmb:\t0000000000000000");
    expect(lines).toContain("NoNewPrivs:\t1");
    expect(lines).toContain("usr");
    expect(lines).not.toContain("root");
    expect(lines).not.toContain("writable");
    expect(lines, "JAX looks for a device file").toContain("nvidiactl");
  });

  it.each(modes)("lets through to a gpud's socket, and nobody lays another there (%o)", async (mode) => {
    const sockets = mkdtempSync(path.join(folder, "gpud-"));
    chmodSync(sockets, 0o755);
    const server = createServer().listen(path.join(sockets, "gpud.sock"));
    await once(server, "listening");
    chmodSync(path.join(sockets, "gpud.sock"), 0o666);
    const what = `python3 -c '${CONNECT}'; touch ${insideLayout.gpuds}/other.sock 2>/dev/null && echo writable; true`;
    const seen = look(mode, { what, mounts: [{ from: sockets, to: insideLayout.gpuds }] });
    server.close();
    expect(seen.trim().split("\n")).toEqual(["connected"]);
  });
});

describe("a workspace's user id", () => {
  const wide = "         0          0 4294967295\n";

  it("is the same at every start, above what systems hand out, and another for another workspace", () => {
    expect(workspaceUid("ws-a", wide)).toBe(workspaceUid("ws-a", wide));
    expect(workspaceUid("ws-a", wide)).toBeGreaterThanOrEqual(0x7000_0000);
    expect(workspaceUid("ws-a", wide)).toBeLessThan(2 ** 31);
    expect(workspaceUid("ws-a", wide)).not.toBe(workspaceUid("ws-b", wide));
  });

  it("is one that exists, in a container with few", () => {
    const few = workspaceUid("ws-a", "         0     100000      65536\n");
    expect(few).toBeGreaterThanOrEqual(20_000);
    expect(few).toBeLessThan(60_000);
  });
});
