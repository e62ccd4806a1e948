/** What stands before and behind next-auth: a limit for what is sent, and one shape for what goes wrong. */
import type { AuthOptions } from "next-auth";
import { z } from "zod";
import { refuseMalformedCallbackUrls } from "#server/auth/callback-url.ts";
import { authOptions, signInContext, signInPage } from "#server/auth/next-auth.ts";
import { providerFailure } from "#server/auth/provider-failure.ts";
import { readCookie } from "#server/auth/session-cookie.ts";
import { retryAfterSeconds } from "#server/auth/token-limit.ts";
import type { Context } from "#server/context.ts";
import { env } from "#server/env.ts";
import { errorBody, httpStatus, SluiceError, toSluiceError } from "#server/errors.ts";
import { readBytes } from "#server/http/read-bytes.ts";
import { logger, traceIdFrom } from "#server/log.ts";
import { recordRefusal } from "#server/services/session/record-refusal.ts";

/** A form with an e-mail, a password and a few addresses. */
const MAX_BODY = 64 * 1024;

type Run = (request: { url: string; init: RequestInit }, options: AuthOptions) => Promise<Response>;

/** Answers a request of `/api/auth`; `run` is next-auth, with the body read already. */
export async function handleAuth(request: Request, run: Run): Promise<Response> {
  try {
    const body = request.body === null ? undefined : await readBytes(request.body, MAX_BODY);
    refuseMalformedCallbackUrls([
      new URL(request.url).searchParams.get("callbackUrl"),
      callbackUrlOf(body?.toString("utf8") ?? "", request.headers.get("content-type") ?? ""),
      decoded(readCookie(request.headers.get("cookie"), "__Host-sluice-callback")),
    ]);
    const ctx = signInContext(request);
    let refused: SluiceError | undefined;
    let failure: { error: unknown } | undefined;
    const options = await authOptions(ctx, request, {
      onRefused: (error) => {
        refused = error;
      },
      onProviderFailure: (error) => {
        failure ??= { error };
      },
    });
    const { url, method, headers } = request;
    const init = { method, headers, ...(body === undefined ? {} : { body: new Uint8Array(body) }) };
    const answer = await run({ url, init }, options);
    if (failure !== undefined) return await withReference(ctx, answer, failure.error);
    return refused === undefined ? answer : withStatus(answer, refused);
  } catch (thrown) {
    const error = toSluiceError(thrown);
    const traceId = traceIdFrom(request.headers.get("traceparent"));
    if (httpStatus(error.code) >= 500) logger("auth").error({ err: thrown, traceId }, error.message);
    const headers = { "cache-control": "no-store", "x-trace-id": traceId };
    return Response.json(errorBody(error), { status: httpStatus(error.code), headers });
  }
}

/** next-auth answers 401 to whatever its form's check throws; the browser's part reads the rest from the body. */
function withStatus(answer: Response, error: SluiceError): Response {
  const isRedirect = answer.status >= 300 && answer.status < 400;
  if (isRedirect) return answer;
  const headers = new Headers(answer.headers);
  if (error.code === "too-many") headers.set("retry-after", String(retryAfterSeconds(error)));
  return new Response(answer.body, { status: httpStatus(error.code), headers });
}

/** Redirects to the sign-in page with the reference of the audit entry about the provider's failure. */
async function withReference(ctx: Context, answer: Response, error: unknown): Promise<Response> {
  const { code, reason, said } = providerFailure(error);
  const { SLUICE_OIDC_ISSUER: issuer = "" } = env();
  const page = signInPage("Provider", await recordRefusal(ctx, { code, reason, said, issuer }));
  const headers = new Headers(answer.headers);
  const isRedirect = answer.status >= 300 && answer.status < 400;
  if (isRedirect) {
    headers.set("location", page);
    return new Response(null, { status: answer.status, headers });
  }
  // next-auth's browser client expects JSON and follows `url`.
  headers.delete("content-length");
  headers.set("content-type", "application/json");
  return new Response(JSON.stringify({ url: page }), { status: answer.status, headers });
}

const withCallbackUrl = z.object({ callbackUrl: z.string().optional() });

function callbackUrlOf(body: string, type: string): string | null | undefined {
  // The browser's part of next-auth names JSON as the type of requests without a body, too.
  if (body === "") return undefined;
  if (type.includes("application/x-www-form-urlencoded")) return new URLSearchParams(body).get("callbackUrl");
  if (!type.includes("application/json")) return undefined;
  const parsed = withCallbackUrl.safeParse(parseJson(body));
  if (!parsed.success) throw new SluiceError("invalid", "The body is not a JSON object with texts.");
  return parsed.data.callbackUrl;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function decoded(value: string | undefined): string | undefined {
  try {
    return value === undefined ? undefined : decodeURIComponent(value);
  } catch {
    return value;
  }
}
