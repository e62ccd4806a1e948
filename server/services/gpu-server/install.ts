import { createReadStream } from "node:fs";
import { Readable } from "node:stream";
import { peekCode } from "#server/auth/one-time-code.ts";
import { authorize, type Context } from "#server/context.ts";
import { type InstallInput, installInput } from "#server/contracts/gpu-server.ts";
import { env } from "#server/env.ts";
import { SluiceError } from "#server/errors.ts";
import { parse } from "#server/parse.ts";
import { gpudProgram } from "./gpud-program.ts";
import { installScript } from "./install-script.ts";

/** Maximum concurrent downloads of gpud, all hosts together. */
const AT_ONCE = 4;
const LONGEST_MS = 15 * 60_000;
let running = 0;

/** Serves the install script or `gpud` to a joining GPU host. The authority is an unused join token. */
export async function install(
  ctx: Context,
  raw: InstallInput & { authorization: string | null },
  folder?: string,
): Promise<Response> {
  authorize(ctx.principal, "gpu-server.join");
  const { authorization, ...rest } = raw;
  const { file } = parse(installInput, rest);
  const token = /^Bearer (slj_[A-Za-z0-9_-]{43})$/.exec(authorization ?? "")?.[1];
  if (token === undefined || (await peekCode(ctx, "gpud-join", token)) === undefined) {
    throw new SluiceError("forbidden", "This join token is invalid or expired. Make a new one: Pool > Add GPU server.");
  }
  const program = await gpudProgram(folder);
  if (program === undefined) {
    throw new SluiceError("not-found", "No gpud was built here. Build it on the GPU host, then run gpud join.");
  }
  if (file === "script") {
    const { SLUICE_PORTAL_URL: portalUrl, SLUICE_BROKER_URL: brokerUrl } = env();
    const script = installScript({ portalUrl, brokerUrl, token, sha256: program.sha256 });
    return new Response(script, { headers: headers("text/x-shellscript; charset=utf-8") });
  }
  if (running >= AT_ONCE) {
    throw new SluiceError("too-many", "Other GPU servers are downloading gpud. Run the command again in a minute.");
  }
  running += 1;
  const stream = createReadStream(program.file, { signal: AbortSignal.timeout(LONGEST_MS) });
  stream.once("close", () => {
    running -= 1;
  });
  // The host sees an aborted download itself.
  stream.once("error", () => undefined);
  return new Response(Readable.toWeb(stream) as ReadableStream<Uint8Array>, {
    headers: { ...headers("application/octet-stream"), "content-length": String(program.size) },
  });
}

const headers = (type: string) => ({
  "content-type": type,
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
});
