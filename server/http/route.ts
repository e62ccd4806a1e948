/** The one way from HTTP to a service: who asks, what is asked, run, answer or mapped error, under a trace id. */
import type { z } from "zod";
import { type Action, authorizeBeforeInput } from "#server/auth/authorize.ts";
import { principalFromHeaders } from "#server/auth/principal-from-request.ts";
import { limitToken, retryAfterSeconds } from "#server/auth/token-limit.ts";
import type { Context } from "#server/context.ts";
import { database } from "#server/db/client.ts";
import { errorBody, httpStatus, type SluiceError, toSluiceError } from "#server/errors.ts";
import { clientAddress } from "#server/http/client-address.ts";
import { eventStream, type StreamEvent } from "#server/http/event-stream.ts";
import { openPlace } from "#server/http/open-streams.ts";
import { readInput } from "#server/http/read-input.ts";
import { refuseCrossOrigin } from "#server/http/same-origin.ts";
import { watchSignIn } from "#server/http/watch-sign-in.ts";
import { live } from "#server/live.ts";
import { logger, traceIdFrom } from "#server/log.ts";
import { parse } from "#server/parse.ts";

export type Method = "GET" | "POST" | "PUT" | "DELETE";

/** What a route is; the API's document and the authorisation matrix are made from it. */
export type RouteDefinition<I extends z.ZodType = z.ZodType, O extends z.ZodType = z.ZodType> = {
  method: Method;
  /** Below `/api/v1`, e.g. `/workspaces/{id}`. */
  path: string;
  summary: string;
  /** What the service asks `authorize` for. */
  action: Action;
  /** The service answers some inputs without a sign-in, although the action's rule does not. */
  anonymousInput?: true;
  /** Path parameters, query and body together. */
  input: I;
  output: O;
  /** 303: goes on to a page. */
  status?: 200 | 201 | 202 | 303;
  /** `always`: answers by server-sent events; `follow`: does so with `?follow`. */
  stream?: "always" | "follow";
  /** Answers as a file where `format` asks for one. */
  csv?: boolean;
};

/** `signal` aborts when the client goes away and, for a stream, when its reader is signed out. */
export type RouteContext = Context & { request: Request; signal: AbortSignal };
type Answer<O extends z.ZodType> = z.input<O> | Response | AsyncIterable<StreamEvent>;
export type RouteHandler = ((
  request: Request,
  at: { params: Promise<Record<string, string | string[] | undefined>> },
) => Promise<Response>) & { definition: RouteDefinition };

/** A Next route handler for one operation. */
export function route<I extends z.ZodType, O extends z.ZodType>(
  definition: RouteDefinition<I, O>,
  run: (ctx: RouteContext, input: z.output<I>) => Promise<Answer<O>> | Answer<O>,
): RouteHandler {
  const handle: (...args: Parameters<RouteHandler>) => Promise<Response> = async (request, at) => {
    const traceId = traceIdFrom(request.headers.get("traceparent"));
    let leave: () => void = () => undefined;
    try {
      refuseCrossOrigin(request);
      const { db } = database();
      const principal = await principalFromHeaders(db, request.headers);
      limitToken(principal);
      // Before the input is read: a caller without the right costs only this answer.
      if (definition.anonymousInput !== true) authorizeBeforeInput(principal, definition.action);
      const input = parse(definition.input, await readInput(request, await at.params));
      const address = clientAddress(request.headers) ?? undefined;
      const asked = { db, principal, now: () => new Date(), traceId, address, request };
      const signedOut = new AbortController();
      const streams = definition.stream !== undefined;
      const signal = streams ? AbortSignal.any([request.signal, signedOut.signal]) : request.signal;
      if (isStreamAsked(definition, request)) leave = openPlace(principal, address);
      const answer = await run({ ...asked, signal }, input);
      if (!isStream(answer)) {
        leave();
        return withTrace(respond(definition, answer), traceId);
      }
      // An open stream promises its reader every later change.
      await live().ready();
      const stopWatching = watchSignIn(asked, () => signedOut.abort());
      const onEnd = () => {
        stopWatching();
        leave();
      };
      return withTrace(eventStream(answer, signal, onEnd), traceId);
    } catch (error) {
      leave();
      return withTrace(refuse(definition, error, traceId), traceId);
    }
  };
  return Object.assign(handle, { definition: definition });
}

function respond<O extends z.ZodType>(
  definition: RouteDefinition<z.ZodType, O>,
  answer: z.input<O> | Response,
): Response {
  if (answer instanceof Response) return answer;
  const checked = definition.output.safeParse(answer);
  // Our fault, not the caller's: it must show in tests and in the log, not in somebody's client.
  if (!checked.success) throw new Error(`The answer breaks its contract: ${checked.error.message}`);
  return Response.json(checked.data, {
    status: definition.status ?? 200,
    headers: { "cache-control": "no-store" },
  });
}

function isStreamAsked({ stream }: RouteDefinition, request: Request): boolean {
  if (stream === "follow") return new URL(request.url).searchParams.has("follow");
  return stream === "always";
}

function isStream(answer: unknown): answer is AsyncIterable<StreamEvent> {
  return typeof answer === "object" && answer !== null && Symbol.asyncIterator in answer;
}

function refuse(definition: RouteDefinition, thrown: unknown, traceId: string): Response {
  const error: SluiceError = toSluiceError(thrown);
  if (error.code === "internal" || error.code === "unavailable") {
    logger("portal").error({ err: thrown, traceId, route: `${definition.method} ${definition.path}` }, error.message);
  }
  const wait = error.code === "too-many" ? { "retry-after": String(retryAfterSeconds(error)) } : undefined;
  const headers = { "cache-control": "no-store", ...wait };
  return Response.json(errorBody(error), { status: httpStatus(error.code), headers });
}

function withTrace(response: Response, traceId: string): Response {
  response.headers.set("x-trace-id", traceId);
  return response;
}
