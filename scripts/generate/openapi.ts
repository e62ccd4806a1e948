import { z } from "zod";
import { RouteErrors } from "#scripts/generate/errors.ts";
import { type ApiRoute, readRoutes } from "#scripts/generate/routes.ts";
import { errorBody } from "#server/contracts/common.ts";
import { type ErrorCode, httpStatus } from "#server/errors.ts";

type Json = Record<string, unknown>;

/** The API's description (OpenAPI 3.1) from the routes and their contracts. */
export async function describeApi(): Promise<Json> {
  const paths: Record<string, Json> = {};
  const routes = await readRoutes();
  const errors = new RouteErrors([...new Set(routes.map(({ file }) => file))]);
  for (const route of routes) {
    const { path, method } = route.definition;
    const codes = errors.of(route.file, method);
    paths[path] = { ...paths[path], [method.toLowerCase()]: describeRoute(route, codes) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Sluice",
      version: "1",
      description:
        "Amounts are thousandths of a GPU (500 is half of one), memory is bytes, times are ISO 8601 in UTC. " +
        "Minutes of calendars count from Monday 00:00 by the clocks of the installation's zone: `timeZone` of `/calendars`. " +
        "A path that is not listed answers 404 as `not-found` below, a method that a path does not list 405 without a body.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/api/v1" }],
    security: [{ accessToken: [] }, { session: [] }],
    paths,
    components: {
      schemas: { Error: schemaOf(errorBody, "output") },
      responses: Object.fromEntries(
        Object.entries(meanings).map(([code, words]) => [code, errorResponse(code, words)]),
      ),
      securitySchemes: {
        accessToken: { type: "http", scheme: "bearer", description: "A personal access token, slp_…" },
        session: { type: "apiKey", in: "cookie", name: "__Host-sluice-session" },
      },
    },
  };
}

/** Each error by its status; what is refused and what a quota refuses share one. */
const meanings = {
  invalid: "The input is wrong: `detail.fields` names each field.",
  "too-large": "The body is larger than is read.",
  unauthenticated: "Nobody is signed in, or the credential is not valid.",
  forbidden: "Signed in, but not allowed; or sent by a page of another site.",
  "not-found": "There is no such thing, or whoever asks may not know of it.",
  conflict: "Something else exists, is under way or was saved meanwhile that excludes this.",
  refused: "Cannot be under today's rules (`refused`), or a quota stands in the way (`quota`).",
  "too-many": "Asked too often: `Retry-After` says in how many seconds again.",
  internal: "A fault of ours, in the log under the answer's `x-trace-id`.",
  unavailable: "Cannot be now; try again.",
} satisfies Record<Exclude<ErrorCode, "quota">, string>;

function errorResponse(code: string, description: string): Json {
  const seconds = { schema: { type: "integer", minimum: 1 }, description: "Seconds" };
  return {
    description,
    ...(code === "too-many" ? { headers: { "Retry-After": { required: true, ...seconds } } } : {}),
    content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
  };
}

/** The statuses of errors, each with what is said of it once. */
function errorsOf(codes: readonly ErrorCode[]): Json {
  const named = codes.map((code) => (code === "quota" ? "refused" : code));
  return Object.fromEntries(
    named.map((code) => [String(httpStatus(code)), { $ref: `#/components/responses/${code}` }]),
  );
}

function describeRoute({ definition }: ApiRoute, codes: readonly ErrorCode[]): Json {
  const { method, path, summary, action, input, output, status } = definition;
  const whole = schemaOf(input, "input") as { properties?: Record<string, Json>; required?: string[] };
  const names = Object.keys(whole.properties ?? {});
  const inPath = names.filter((name) => path.includes(`{${name}}`));
  const others = names.filter((name) => !inPath.includes(name));
  const hasBody = (method === "POST" || method === "PUT") && others.length > 0;
  const parameter = (name: string, where: "path" | "query") => ({
    name,
    in: where,
    required: where === "path" || (whole.required ?? []).includes(name),
    schema: whole.properties?.[name] ?? {},
  });
  return {
    operationId: operationId(method, path),
    summary,
    tags: [path.split("/")[1]],
    "x-sluice-action": action,
    ...(isPublic(action) ? { security: [] } : {}),
    parameters: [
      ...inPath.map((name) => parameter(name, "path")),
      ...(hasBody ? [] : others.map((name) => parameter(name, "query"))),
    ],
    ...(hasBody ? { requestBody: body(pick(whole, others)) } : {}),
    responses: {
      [String(status ?? 200)]: {
        description: summary,
        ...(status === 303 ? {} : { content: contentOf(schemaOf(output, "output"), definition) }),
      },
      ...errorsOf(codes),
    },
  };
}

/** Routes whose authority is a one-time code in the input, or that anybody may read. */
function isPublic(action: string): boolean {
  return [
    ...["setup.read", "setup.complete", "user.accept-invite", "user.redeem-password-link", "user.enter-sample"],
    "api.describe",
  ].includes(action);
}

function contentOf(schema: Json, { stream, csv }: Pick<ApiRoute["definition"], "stream" | "csv">): Json {
  const events = { "text/event-stream": { schema: { type: "string", description: "Server-sent events" } } };
  if (stream === "always") return events;
  const file = { "text/csv": { schema: { type: "string", description: "A table with a header line (RFC 4180)" } } };
  return {
    "application/json": { schema },
    ...(stream === "follow" ? events : {}),
    ...(csv === true ? file : {}),
  };
}

function body(schema: Json): Json {
  return { required: true, content: { "application/json": { schema } } };
}

function pick(whole: { properties?: Record<string, Json>; required?: string[] }, names: string[]): Json {
  const required = (whole.required ?? []).filter((name) => names.includes(name));
  return {
    type: "object",
    properties: Object.fromEntries(names.map((name) => [name, whole.properties?.[name] ?? {}])),
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: false,
  };
}

function schemaOf(schema: z.ZodType, io: "input" | "output"): Json {
  return Object.fromEntries(
    Object.entries(z.toJSONSchema(schema, { io, unrepresentable: "any" })).filter(([name]) => name !== "$schema"),
  );
}

/** `POST /workspaces/{id}/stop` → `postWorkspacesIdStop`. */
function operationId(method: string, path: string): string {
  const words = path.split(/[^A-Za-z0-9]+/).filter((word) => word !== "");
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
}
