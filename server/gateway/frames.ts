/** A WebSocket whose bytes pass by: where its frames end, as only there another may stand. */
import type { Duplex } from "node:stream";

/** A close frame with the code 1012: the server is started again, and the client connects anew. */
const SERVICE_RESTART = Buffer.from([0x88, 2, 1012 >> 8, 1012 & 0xff]);

export class Frames {
  readonly #from: Duplex;
  /** What has come of a frame's head. */
  #head: number[] = [];
  /** So much of a frame's content is still to come. */
  #left = 0;

  /** `from`: the server's side, which is piped to the client. */
  constructor(from: Duplex) {
    this.#from = from;
    from.on("data", (chunk: Buffer) => this.#pass(chunk));
  }

  /** Ends the client's side, between two frames by a close that says why, and amid one without a word. */
  endForRestart(client: Duplex): void {
    this.#from.unpipe(client);
    if (this.#left === 0 && this.#head.length === 0) client.end(SERVICE_RESTART);
    else client.destroy();
  }

  #pass(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      const content = Math.min(this.#left, chunk.length - at);
      this.#left -= content;
      at += content;
      for (; this.#left === 0 && at < chunk.length; at++) {
        this.#head.push(chunk[at] ?? 0);
        const length = contentLength(this.#head);
        if (length === undefined) continue;
        this.#head = [];
        this.#left = length;
      }
    }
  }
}

/** How long a frame's content is, with the key that a masked one has before it; undefined while its head is not complete. */
function contentLength(head: readonly number[]): number | undefined {
  const [, second] = head;
  if (second === undefined) return undefined;
  const short = second & 0x7f;
  const size = short === 127 ? 8 : short === 126 ? 2 : 0;
  if (head.length < 2 + size) return undefined;
  const length = size === 0 ? short : head.slice(2).reduce((sum, byte) => sum * 256 + byte, 0);
  return length + (second & 0x80 ? 4 : 0);
}
