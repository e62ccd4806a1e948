/** Code in a kernel of a real JupyterLab. */
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import { LocalLauncher } from "#server/launchers/local/local-launcher.ts";
import { makeTestState, type TestState } from "#server/launchers/local/testing.ts";
import { aWorkspaceSpec } from "#server/launchers/testing.ts";
import { addressOf, connectToSocket, WorkspaceAgent } from "./endpoint.ts";
import { runCode } from "./run-code.ts";
import { waitForServer } from "./wait-for-server.ts";

const spec = aWorkspaceSpec();
let state: TestState;
let launcher: LocalLauncher;
let endpoint: string;

beforeAll(async () => {
  state = await makeTestState();
  launcher = new LocalLauncher({ stateDir: state.stateDir, wheel: undefined });
  const steps = { started: () => undefined, done: () => undefined, log: () => undefined };
  const { signal } = new AbortController();
  ({ endpoint } = await launcher.ensure(spec, steps, signal));
  const stillRuns = async () => (await launcher.observe(spec.id)).state === "running";
  await waitForServer({ endpoint, token: spec.serverToken }, { stillRuns, timeoutMs: 60_000, signal });
}, 240_000);
afterAll(async () => {
  await launcher.remove(spec.id);
  await state.drop();
});

/** The server by a network where the answer that lists its kernels comes late, after a kernel was started. */
async function withLateLists<T>(work: (endpoint: string) => Promise<T>): Promise<T> {
  const target = addressOf(endpoint);
  const agent = new WorkspaceAgent({ keepAlive: false });
  const started = Promise.withResolvers<void>();
  const proxy = createServer((asked, answer) => {
    const { method, url: path, headers } = asked;
    const ofKernels = path?.startsWith("/api/kernels") === true;
    const onward = request({ ...target, method, path, headers, agent }, (given) => {
      const pass = () => given.pipe(answer.writeHead(given.statusCode ?? 502, given.headers));
      if (ofKernels && method === "GET") void started.promise.then(pass);
      else pass();
      if (ofKernels && method === "POST") given.once("end", () => setTimeout(started.resolve, 50));
    });
    asked.pipe(onward);
  });
  proxy.on("upgrade", ({ method, url, rawHeaders }, socket, head) => {
    const onward = connectToSocket(target.socketPath ?? "");
    const lines = [`${method} ${url} HTTP/1.1`];
    for (let at = 0; at < rawHeaders.length; at += 2) lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`);
    onward.write(`${lines.join("\r\n")}\r\n\r\n`);
    onward.write(head);
    socket.pipe(onward).pipe(socket);
    socket.on("error", () => onward.destroy());
    onward.on("error", () => socket.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  try {
    return await work(`http://127.0.0.1:${(proxy.address() as AddressInfo).port}`);
  } finally {
    proxy.closeAllConnections();
    proxy.close();
  }
}

it("gives what a kernel of its own printed, and an exception's text", async () => {
  const server = { endpoint, token: spec.serverToken };
  expect(await runCode(server, "print(6 * 7)", { timeoutMs: 60_000 })).toBe("42");
  expect(await runCode(server, "1 / 0", { timeoutMs: 60_000 })).toBe("ZeroDivisionError: division by zero");
}, 120_000);

it("is not called off by a list of the server's kernels from before its own was started", async () => {
  const printed = await withLateLists((late) =>
    runCode({ endpoint: late, token: spec.serverToken }, "import time; time.sleep(2); print(6 * 7)", {
      timeoutMs: 60_000,
    }),
  );
  expect(printed).toBe("42");
}, 120_000);
