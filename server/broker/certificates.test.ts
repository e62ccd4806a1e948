/** Which certificate the broker shows at its two ports: of its own, and of the one by which a cluster asks. */
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { connect } from "node:tls";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { logger } from "#server/log.ts";
import { type Broker, type Certificate, startBroker } from "./broker.ts";

const MAIN = "sluice-broker.sluice.svc";
const INTERNAL = "sluice-internal.sluice.svc";

let folder: string;
let database: TestDatabase;
let broker: Broker;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-certificates-"));
  database = await useTestDatabase({ max: 10 });
  const env = { SLUICE_STATE_DIR: folder };
  const [tls, internalTls] = [await certificateFor(MAIN), await certificateFor(INTERNAL)];
  broker = await startBroker({ database, env, log: logger("test"), port: 0, tls, internalTls });
});
afterAll(async () => {
  await broker?.stop();
  await database?.drop();
  await rm(folder, { recursive: true, force: true });
});

/** One that vouches for itself. */
async function certificateFor(host: string): Promise<Certificate> {
  const [key, cert] = [path.join(folder, `${host}.key`), path.join(folder, `${host}.crt`)];
  const made = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  const names = ["-subj", "/CN=broker", "-addext", `subjectAltName=DNS:${host}`];
  await promisify(execFile)("openssl", ["req", ...made, ...names, "-keyout", key, "-out", cert]);
  return { cert: await readFile(cert, "utf8"), key: await readFile(key, "utf8") };
}

/** The names that the port's certificate holds for, asked for by this one. */
async function shownAt(port: number, servername: string): Promise<string | undefined> {
  return await new Promise((resolve, reject) => {
    const socket = connect({ port, host: "127.0.0.1", servername, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().subjectaltname);
      socket.end();
    });
    socket.once("error", reject);
  });
}

it("shows the internal one at the internal port alone, to who asks by its name; who does not goes on as before", async () => {
  expect(await shownAt(broker.port, MAIN)).toBe(`DNS:${MAIN}`);
  expect(await shownAt(broker.port, INTERNAL)).toBe(`DNS:${MAIN}`);
  expect(await shownAt(broker.internalPort, INTERNAL)).toBe(`DNS:${INTERNAL}`);
  expect(await shownAt(broker.internalPort, MAIN)).toBe(`DNS:${MAIN}`);
});
