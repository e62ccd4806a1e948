import { SluiceError } from "#server/errors.ts";
import { refuseUnstorable } from "#server/storable.ts";
import { MAX_BODY_BYTES, readBytes } from "./read-bytes.ts";

/**
 * Path parameters, query and JSON body as one object. A field given twice by different ways is refused, and so is a text
 * that the database cannot store.
 */
export async function readInput(
  request: Request,
  params: Record<string, string | string[] | undefined>,
): Promise<Record<string, unknown>> {
  // Without a prototype: a field of the name `__proto__` is one like any other, and an unknown one.
  const input = Object.create(null) as Record<string, unknown>;
  Object.assign(input, params);
  const put = (name: string, value: unknown) => {
    if (Object.hasOwn(input, name)) throw new SluiceError("invalid", `${name}: This is given twice.`);
    input[name] = value;
  };
  for (const [name, value] of new URL(request.url).searchParams) put(name, value);
  for (const [name, value] of Object.entries(await readBody(request))) put(name, value);
  refuseUnstorable(input);
  return input;
}

async function readBody(request: Request): Promise<Record<string, unknown>> {
  if (request.method === "GET" || request.method === "HEAD") return {};
  const text = await readText(request);
  if (text.trim() === "") return {};
  if (!/^application\/json\b/i.test(request.headers.get("content-type") ?? "")) {
    throw new SluiceError("invalid", "Send JSON, with content-type application/json.");
  }
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new SluiceError("invalid", "The body is not valid JSON.");
  }
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    throw new SluiceError("invalid", "The body is a JSON object.");
  }
  return body as Record<string, unknown>;
}

async function readText(request: Request): Promise<string> {
  if (request.body === null) return "";
  return new TextDecoder().decode(await readBytes(request.body, MAX_BODY_BYTES));
}
