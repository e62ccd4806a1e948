/** The browser's way to `/api/v1`: same origin, JSON both ways, errors as values with the server's own sentence. */

export type ApiError = {
  /** One of the server's closed set, or `offline` when no answer came. */
  code: string;
  /** For people: sentences without field names. */
  message: string;
  /** Field name → sentence, when single fields are to blame. */
  fields: Record<string, string>;
  /** Structured detail for pages, documented by each operation. */
  detail?: unknown;
};
export type ApiResult<T> = { ok: true; data: T } | { ok: false; error: ApiError };

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Calls `/api/v1<path>`; never throws. */
export async function api<T = unknown>(method: Method, path: string, body?: unknown): Promise<ApiResult<T>> {
  let response: Response;
  try {
    response = await fetch(`/api/v1${path}`, {
      method,
      headers: body === undefined ? {} : { "content-type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
    });
  } catch {
    return failed("offline", "The portal did not answer. Check the connection, then try again.");
  }
  const answer: unknown = await response.json().catch(() => null);
  if (response.ok) return { ok: true, data: answer as T };
  const error = readError(answer);
  return error ?? failed("internal", `The portal answered ${response.status} without a reason. Try again.`);
}

function failed(code: string, message: string): ApiResult<never> {
  return { ok: false, error: { code, message, fields: {} } };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

function readError(answer: unknown): ApiResult<never> | undefined {
  if (!isRecord(answer) || !isRecord(answer.error) || typeof answer.error.message !== "string") return undefined;
  const { code, message: said, detail } = answer.error;
  const fields = readFields(detail);
  // One field's sentence without particulars: `limitMilli: The limit is …`.
  const single = /^([a-z][A-Za-z.]*): (.+)$/s.exec(said);
  if (single?.[1] && single[2] && Object.keys(fields).length === 0) fields[single[1]] = single[2];
  // Field names are for programs; people read the sentences only.
  const sentences = [...new Set(Object.values(fields))];
  const message = sentences.length === 0 ? said : sentences.join(" ");
  return { ok: false, error: { code: typeof code === "string" ? code : "internal", message, fields, detail } };
}

function readFields(detail: unknown): Record<string, string> {
  const fields: Record<string, string> = {};
  if (!isRecord(detail) || !Array.isArray(detail.fields)) return fields;
  for (const each of detail.fields as unknown[]) {
    if (!isRecord(each) || typeof each.field !== "string" || typeof each.message !== "string") continue;
    fields[each.field] ??= each.message;
  }
  return fields;
}
