/**
 * The opening of a SOCKS5 connection (RFC 1928), without authentication. Commands are CONNECT and RESOLVE, an extension of
 * Tor's SOCKS: here its answer says only whether the name has an address.
 */
import type { Socket } from "node:net";
import type { Destination } from "./judge.ts";

const VERSION = 5;
const COMMANDS: Readonly<Record<number, SocksCommand>> = { 1: "connect", 240: "resolve" };
const NO_AUTHENTICATION = 0;
const NOT_ACCEPTABLE = 0xff;
/** Longest opening: a greeting of 257 bytes and a request of 262. */
const LONGEST = 1024;

/** Answers of a SOCKS5 server to a request. */
export const REPLY = { done: 0, failed: 1, notAllowed: 2, hostUnreachable: 4, unknownCommand: 7, unknownAddress: 8 };

export type SocksCommand = "connect" | "resolve";

/** An opening that is not valid SOCKS5. The client already has its answer. */
export class SocksError extends Error {}

/** Reads greeting and request, answers the greeting, and leaves `socket` paused with what came after the request. */
export async function readSocksRequest(socket: Socket): Promise<Destination & { command: SocksCommand }> {
  const reader = new Reader(socket);
  try {
    const [version = 0, methods = 0] = await reader.take(2);
    if (version !== VERSION) throw new SocksError("not SOCKS5");
    const offered = await reader.take(methods);
    const suits = offered.includes(NO_AUTHENTICATION);
    socket.write(Buffer.from([VERSION, suits ? NO_AUTHENTICATION : NOT_ACCEPTABLE]));
    if (!suits) throw new SocksError("the client wants to authenticate");
    const [again = 0, code = 0, , kind = 0] = await reader.take(4);
    if (again !== VERSION) throw new SocksError("not SOCKS5");
    const host = await readHost(reader, kind);
    const port = (await reader.take(2)).readUInt16BE();
    const command = COMMANDS[code];
    if (command === undefined) throw refused(socket, REPLY.unknownCommand, "only CONNECT and RESOLVE are known");
    if (host === undefined) throw refused(socket, REPLY.unknownAddress, "unknown kind of address");
    return { command, host, port };
  } finally {
    reader.close();
  }
}

/** Answers a request. The bound address of the answer stays empty. */
export function answerSocks(socket: Socket, reply: number): void {
  socket.write(Buffer.from([VERSION, reply, 0, 1, 0, 0, 0, 0, 0, 0]));
}

function refused(socket: Socket, reply: number, why: string): SocksError {
  answerSocks(socket, reply);
  return new SocksError(why);
}

async function readHost(reader: Reader, kind: number): Promise<string | undefined> {
  if (kind === 1) return (await reader.take(4)).join(".");
  if (kind === 3) {
    const [length = 0] = await reader.take(1);
    return (await reader.take(length)).toString("latin1");
  }
  if (kind !== 4) return undefined;
  const bytes = await reader.take(16);
  return Array.from({ length: 8 }, (_, at) => bytes.readUInt16BE(at * 2).toString(16)).join(":");
}

/** Takes exact numbers of bytes from a socket, and puts surplus bytes back. */
class Reader {
  readonly #socket: Socket;
  /** Bytes that were read from the socket and not taken. Reads drain the socket, so waiting costs no processor time. */
  #rest = Buffer.alloc(0);
  #taken = 0;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  async take(bytes: number): Promise<Buffer> {
    this.#taken += bytes;
    if (this.#taken > LONGEST) throw new SocksError("the opening is too long");
    while (this.#rest.length < bytes) {
      const more = this.#socket.read() as Buffer | null;
      if (more !== null) this.#rest = Buffer.concat([this.#rest, more]);
      else if (this.#socket.readableEnded || this.#socket.destroyed) throw new SocksError("the client left");
      else await this.#readable();
    }
    const part = this.#rest.subarray(0, bytes);
    this.#rest = this.#rest.subarray(bytes);
    return part;
  }

  close(): void {
    this.#socket.pause();
    if (this.#rest.length > 0 && !this.#socket.readableEnded) this.#socket.unshift(this.#rest);
  }

  async #readable(): Promise<void> {
    await new Promise<void>((resolve) => {
      const done = () => {
        for (const event of ["readable", "end", "close"] as const) this.#socket.off(event, done);
        resolve();
      };
      for (const event of ["readable", "end", "close"] as const) this.#socket.once(event, done);
    });
  }
}
