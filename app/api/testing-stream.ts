/** For tests: reads server-sent events from a route's handler. */
import { expect } from "vitest";
import type { RouteHandler } from "#server/http/route.ts";

export type OpenStream = {
  next: () => Promise<{ id: string; message: string }>;
  nextData: () => Promise<unknown>;
  /** Settles when the stream ends, whatever comes before. */
  ended: () => Promise<void>;
  close: () => void;
};

/** Opens an event stream by its route's handler; settles when the stream says that it is open. */
export async function openStream(
  handler: RouteHandler,
  path: string,
  params: Record<string, string>,
  headers: Record<string, string>,
): Promise<OpenStream> {
  const abort = new AbortController();
  const response = await handler(
    new Request(`http://localhost:3000/api/v1/${path}`, { headers, signal: abort.signal }),
    { params: Promise.resolve(params) },
  );
  expect(response.headers.get("content-type")).toContain("text/event-stream");
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  const block = async (): Promise<Map<string, string>> => {
    for (;;) {
      const end = text.indexOf("\n\n");
      if (end >= 0) {
        const lines = text.slice(0, end).split("\n");
        text = text.slice(end + 2);
        const fields = new Map(lines.map((line) => [line.split(": ")[0] ?? "", line.slice(line.indexOf(": ") + 2)]));
        if (fields.has("data")) return fields;
        continue;
      }
      const chunk = await reader?.read();
      if (chunk === undefined || chunk.done) throw new Error("The stream ended.");
      text += chunk.value;
    }
  };
  return {
    next: async () => {
      const fields = await block();
      return {
        id: fields.get("id") ?? "",
        message: (JSON.parse(fields.get("data") ?? "{}") as { message: string }).message,
      };
    },
    nextData: async () => JSON.parse((await block()).get("data") ?? "null") as unknown,
    ended: async () => {
      // A stream may also fail, if its source noticed first.
      const done = async () => (await reader?.read().catch(() => undefined))?.done !== false;
      while (!(await done()));
    },
    close: () => {
      abort.abort();
      void reader?.cancel().catch(() => undefined);
    },
  };
}
