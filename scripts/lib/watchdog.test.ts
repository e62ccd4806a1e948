/** A service whose event loop blocks on demand, and a watchdog that does not wait for minutes. */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { freePort } from "#server/free-port.ts";
import { type Service, startService } from "./processes.ts";
import { type Ask, askHealth, Watchdog, watchdogOf } from "./watchdog.ts";

const PROGRAM = `
  require("node:http").createServer((request, response) => {
    if (request.url === "/block") for (;;);
    response.statusCode = 503;
    response.end();
  }).listen(Number(process.argv[1]), "127.0.0.1", () => console.log("up"));
  process.on("SIGTERM", () => process.exit(0));`;

describe("a service with a watchdog", () => {
  let service: Service | undefined;
  let port: number;
  const restarts: string[] = [];
  beforeEach(async () => {
    port = await freePort();
    restarts.length = 0;
    const ask = askHealth({ host: "127.0.0.1", port });
    service = await startService("portal", {
      command: process.execPath,
      args: ["-e", PROGRAM, String(port)],
      env: process.env,
      logFile: path.join(await mkdtemp(path.join(tmpdir(), "sluice-service-")), "log"),
      ready: (line) => line === "up",
      onRestart: (reason) => restarts.push(reason),
      watchdog: new Watchdog({ ask, silentMs: 1_000, startMs: 20_000, askMs: 50 }),
    });
  });
  afterEach(async () => await service?.stop(500));
  const get = (target: string) => fetch(`http://127.0.0.1:${port}${target}`, { signal: AbortSignal.timeout(500) });

  it("is ended and started again when the event loop stalls, with one line that says so", async () => {
    const first = service?.pid();
    // The watchdog has heard the service once before.
    await new Promise((resolve) => setTimeout(resolve, 500));
    await get("/block").catch(() => undefined);
    await vi.waitFor(() => expect(service?.pid()).not.toBe(first), 10_000);
    await vi.waitFor(async () => expect((await get("/")).status).toBe(503), 10_000);
    expect(restarts).toEqual(["portal did not answer for 1 s and was ended"]);
  });

  it("is left alone while any answer comes, also one of a service that is not well", async () => {
    const first = service?.pid();
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    expect(service?.pid()).toBe(first);
    expect(restarts).toEqual([]);
  });
});

it("is there for portal, broker and gateway, and not for gpud", () => {
  const ports = { portalPort: 1, brokerPort: 2, gatewayPort: 3 };
  const names = ["portal", "broker", "gateway", "gpud"];
  expect(names.map((name) => watchdogOf(name, ports, process.env) !== undefined)).toEqual([true, true, true, false]);
});

describe("a watchdog", () => {
  beforeEach(() => void vi.useFakeTimers({ now: 1_000_000 }));
  afterEach(() => void vi.useRealTimers());

  const silent: Ask = (signal) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(new Error("no answer"))));
  /** Answers once, and never again. `onSilent` is called when a question begins to wait. */
  const once = (onSilent: () => void = () => undefined): Ask => {
    let asked = 0;
    return async (signal) => {
      if (asked++ === 0) return;
      onSilent();
      await silent(signal);
    };
  };

  it("judges nobody by the time in which the machine was suspended", async () => {
    let stalls = 0;
    const { promise: isSilent, resolve } = Promise.withResolvers<void>();
    const watching = new Watchdog({ ask: once(resolve), askMs: 1 }).watch(() => stalls++);
    // The pause between two questions takes real time.
    await isSilent;
    await vi.advanceTimersByTimeAsync(5_000);
    vi.setSystemTime(Date.now() + 3_600_000);
    await vi.advanceTimersByTimeAsync(9_000);
    expect(stalls).toBe(0);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(stalls).toBe(1);
    watching.stop();
  });

  it("gives a new run the time of a start, and ends one that does not come up", async () => {
    let stalls = 0;
    const watchdog = new Watchdog({ ask: once(), askMs: 1 });
    watchdog.watch(() => undefined).stop();
    await vi.advanceTimersByTimeAsync(10);
    watchdog.watch(() => stalls++);
    await vi.advanceTimersByTimeAsync(59_000);
    expect(stalls).toBe(0);
    await vi.advanceTimersByTimeAsync(2_000);
    expect(stalls).toBe(1);
  });

  it("ends nothing for the sake of an address that has never answered", async () => {
    let stalls = 0;
    const watching = new Watchdog({ ask: silent }).watch(() => stalls++);
    await vi.advanceTimersByTimeAsync(600_000);
    expect(stalls).toBe(0);
    watching.stop();
  });
});
