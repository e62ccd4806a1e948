import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { choosePorts, holdChosenPorts } from "./config.ts";

const VARIABLES = ["PORTAL", "BROKER", "BROKER_INTERNAL", "GATEWAY", "GPUD"].map((name) => `SLUICE_${name}_PORT`);
const before = { ...process.env };
let folder: string;
let taken: Server;
let port: number;

beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-ports-"));
  taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, "127.0.0.1", resolve));
  port = (taken.address() as AddressInfo).port;
  for (const name of VARIABLES) delete process.env[name];
});
afterEach(async () => {
  process.env = { ...before };
  taken.close();
  await rm(folder, { recursive: true, force: true });
});

const keep = async (ports: Record<string, number>) => {
  await writeFile(path.join(folder, "config.json"), JSON.stringify(ports));
};

it("moves a default port that is taken to the next free one, and gives no port twice", async () => {
  const ports = Object.values(await choosePorts(folder));
  expect(new Set(ports).size).toBe(5);
});

it("keeps the ports of the last start, taken or not", async () => {
  await keep({ portalPort: port });
  expect((await choosePorts(folder)).portalPort).toBe(port);
  for (const name of VARIABLES.slice(1)) process.env[name] = "0";
  await expect(holdChosenPorts(folder)).rejects.toThrow(`Port ${port} is taken by process ${process.pid}`);
});

it("prefers a port of the environment, and rejects one that is none", async () => {
  await keep({ portalPort: port });
  process.env.SLUICE_PORTAL_PORT = "4711";
  expect((await choosePorts(folder)).portalPort).toBe(4711);
  process.env.SLUICE_PORTAL_PORT = "http";
  await expect(choosePorts(folder)).rejects.toThrow("SLUICE_PORTAL_PORT");
});

it("rejects one port for two processes", async () => {
  process.env.SLUICE_PORTAL_PORT = process.env.SLUICE_GATEWAY_PORT = "4711";
  await expect(choosePorts(folder)).rejects.toThrow("SLUICE_PORTAL_PORT and SLUICE_GATEWAY_PORT are both 4711");
});

it("holds a free port for each 0 and keeps the choice", async () => {
  for (const name of VARIABLES) process.env[name] = "0";
  const { ports, sockets } = await holdChosenPorts(folder);
  sockets.close();
  expect(Object.values(ports).every((each) => each > 0)).toBe(true);
  expect(JSON.parse(await readFile(path.join(folder, "config.json"), "utf8"))).toEqual(ports);
});
