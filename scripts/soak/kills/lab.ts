/** The files of a workspace as JupyterLab reads and saves them: through the gateway, with the cookie of a browser. */
import { type IncomingHttpHeaders, request } from "node:http";
import type { APIRequestContext } from "@playwright/test";
import { change } from "../../../e2e/fixtures/api.ts";

const TIMEOUT_MS = 20_000;
/** Without a valid cookie the gateway answers with one of these. */
const SIGNED_OUT = new Set([401, 403, 424]);

type Answer = { status: number; headers: IncomingHttpHeaders; body: string };

export class Lab {
  readonly #api: APIRequestContext;
  readonly #workspaceId: string;
  readonly #port: number;
  #cookie: string | undefined;

  constructor(api: APIRequestContext, workspaceId: string, gatewayPort: number) {
    this.#api = api;
    this.#workspaceId = workspaceId;
    this.#port = gatewayPort;
  }

  /** Saves a notebook with one cell of text; throws if the server did not confirm it. */
  async save(path: string, text: string): Promise<void> {
    const cells = [{ cell_type: "markdown", id: "text", metadata: {}, source: text }];
    const content = { cells, metadata: {}, nbformat: 4, nbformat_minor: 5 };
    await this.#ask("PUT", `/api/contents/${path}`, { type: "notebook", format: "json", content });
  }

  /** The text of a notebook's one cell. */
  async read(path: string): Promise<string> {
    const body = await this.#ask("GET", `/api/contents/${path}?content=1`);
    const { content } = JSON.parse(body) as { content: { cells: { source: string }[] } };
    return content.cells[0]?.source ?? "";
  }

  async #ask(method: "GET" | "PUT", path: string, body?: unknown): Promise<string> {
    this.#cookie ??= await this.#open();
    const answer = await this.#send(method, path, { cookie: this.#cookie, origin: `http://${this.#host}` }, body);
    if (SIGNED_OUT.has(answer.status)) this.#cookie = undefined;
    if (answer.status >= 300) throw new Error(`${method} ${path}: HTTP ${answer.status} ${answer.body.slice(0, 300)}`);
    return answer.body;
  }

  /** The gateway trades the portal's one-time code for a cookie. */
  async #open(): Promise<string> {
    const { url } = await change<{ url: string }>(this.#api, "post", `/workspaces/${this.#workspaceId}/open`);
    const { pathname, search } = new URL(url);
    const { headers, status } = await this.#send("GET", `${pathname}${search}`, {});
    const cookie = headers["set-cookie"]?.[0]?.split(";")[0];
    if (cookie === undefined) throw new Error(`the workspace does not open: HTTP ${status}`);
    return cookie;
  }

  get #host(): string {
    return `${this.#workspaceId}.localhost:${this.#port}`;
  }

  /** By the address: a resolver need not know the names below localhost, as browsers do. */
  async #send(method: string, path: string, headers: Record<string, string>, body?: unknown): Promise<Answer> {
    return await new Promise((resolve, reject) => {
      const options = { host: "127.0.0.1", port: this.#port, method, path, agent: false as const };
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      const type = { "content-type": "application/json" };
      const asked = request({ ...options, signal, headers: { host: this.#host, ...type, ...headers } }, (answer) => {
        const parts: Buffer[] = [];
        answer.on("data", (part: Buffer) => parts.push(part));
        answer.on("error", reject);
        answer.on("end", () =>
          resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(parts).toString() }),
        );
      });
      asked.on("error", reject);
      asked.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }
}
