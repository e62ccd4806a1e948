import { ServerConnection } from "@jupyterlab/services";
import WebSocket from "ws";
import { readAnswer } from "#server/http/bounded-answer.ts";
import { baseUrlOf, fetchOf, WorkspaceAgent } from "./endpoint.ts";

/** Longest answer that holds figures only, bytes. */
const LONGEST_ANSWER = 4096;
/** Longest message of a WebSocket, bytes; outputs of a cell come in several. */
const LONGEST_MESSAGE = 16 * 1024 * 1024;

export type JupyterServer = { endpoint: string; token: string };

/** How the Jupyter client library reaches a server. */
export function serverSettings({ endpoint, token }: JupyterServer): ServerConnection.ISettings {
  const authorization = `token ${token}`;
  const baseUrl = baseUrlOf(endpoint);
  /** The token goes into a header; the library itself would put it into the URL, and so into logs. */
  class TokenSocket extends WebSocket {
    constructor(url: string | URL) {
      const agent = new WorkspaceAgent({ keepAlive: false }, endpoint);
      // Without the library's subprotocol, messages are text. Binary ones name the places of their parts, which may
      // overlap: one of 16 MiB could be read as a million parts of 16 MiB.
      super(url, [], {
        headers: { authorization },
        agent,
        maxPayload: LONGEST_MESSAGE,
        // A compressed message takes far less memory of its sender than of this process.
        perMessageDeflate: false,
        handshakeTimeout: 30_000,
      });
    }

    /** The library throws for a message that is none of Jupyter's, and nothing catches what a listener throws. */
    override addEventListener(...[type, listener, options]: Parameters<WebSocket["addEventListener"]>): void {
      const guarded = (event: WebSocket.MessageEvent) => {
        // Buffers of widgets, which are not shown here.
        if (typeof event.data !== "string") return;
        try {
          (listener as (event: WebSocket.MessageEvent) => void)(event);
        } catch {
          this.terminate();
        }
      };
      super.addEventListener(type, type === "message" ? (guarded as typeof listener) : listener, options);
    }
  }
  return ServerConnection.makeSettings({
    baseUrl,
    wsUrl: baseUrl.replace(/^http/, "ws"),
    token: "",
    appendToken: false,
    init: { headers: { authorization } },
    fetch: fetchOf(endpoint),
    WebSocket: TokenSocket as unknown as typeof globalThis.WebSocket,
  });
}

/** The same for a look from outside: it has an end, and the server does not take it for somebody at work. */
export function onlookerSettings(server: JupyterServer, timeoutMs: number): ServerConnection.ISettings {
  class QuietRequest extends Request {
    constructor(input: string | URL | Request, init?: RequestInit) {
      const url = new URL(input instanceof Request ? input.url : input);
      url.searchParams.set("no_track_activity", "1");
      super(url, { ...init, signal: AbortSignal.timeout(timeoutMs) });
    }
  }
  return { ...serverSettings(server), Request: QuietRequest };
}

/** Reads a short answer of a server under a tenant's control, such as figures. */
export async function readShort(response: Response): Promise<string> {
  return (await readAnswer(response.body ?? new Blob([]).stream(), LONGEST_ANSWER)).toString();
}
