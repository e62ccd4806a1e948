/** What is open through the gateway, so that it ends when the right to it ends. */
import type { Duplex } from "node:stream";
import { setInterval } from "node:timers";
import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "#server/db/client.ts";
import { toSluiceError } from "#server/errors.ts";
import type { Live } from "#server/live.ts";
import type { Logger } from "#server/log.ts";
import { Frames } from "./frames.ts";
import { type Admission, admitAgain } from "./sessions.ts";

const SWEEP_MS = 2_000;
/** So long a browser has to close its side when we end. */
const CLOSE_MS = 1_000;

type Open = { socket: Duplex; admission: Admission };

export class Connections {
  readonly #db: Database;
  readonly #log: Logger;
  readonly #open = new Set<Open>();
  /** Of those that have become WebSockets. */
  readonly #frames = new WeakMap<Duplex, Frames>();
  readonly #timer: NodeJS.Timeout;
  readonly #unsubscribe: () => void;
  #sweeping: Promise<void> | undefined;
  #again = false;

  constructor(db: Database, live: Live, log: Logger) {
    this.#db = db;
    this.#log = log;
    this.#timer = setInterval(() => this.sweep(), SWEEP_MS);
    // A session's end, a lost membership and an end of sharing are in the audit; a stop changes the workspace.
    this.#unsubscribe = live.subscribe(["workspace", "audit"], () => this.sweep());
  }

  get size(): number {
    return this.#open.size;
  }

  /**
   * Closes `socket` as soon as this admission no longer holds; the returned function forgets the socket. Undefined for
   * a socket that has closed already: its client left during the admission, and no `close` event is to come.
   */
  add(socket: Duplex, admission: Admission): (() => void) | undefined {
    if (socket.destroyed) return undefined;
    const entry = { socket, admission };
    this.#open.add(entry);
    const forget = () => this.#open.delete(entry);
    socket.once("close", forget);
    return () => {
      socket.removeListener("close", forget);
      forget();
    };
  }

  /** `socket` has become a WebSocket, whose frames come from there. */
  upgraded(socket: Duplex, from: Duplex): void {
    this.#frames.set(socket, new Frames(from));
  }

  isUpgraded(socket: Duplex): boolean {
    return this.#frames.has(socket);
  }

  /** Looks at everything open; calls during a look make one more. */
  sweep(): void {
    this.#again = true;
    this.#sweeping ??= this.#sweeps().finally(() => {
      this.#sweeping = undefined;
    });
  }

  /** Ends everything open; WebSockets are told that we are started again. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#unsubscribe();
    this.#again = false;
    await this.#sweeping;
    for (const { socket } of this.#open) {
      const frames = this.#frames.get(socket);
      if (frames === undefined) socket.destroy();
      else frames.endForRestart(socket);
    }
    for (const until = performance.now() + CLOSE_MS; this.#open.size > 0 && performance.now() < until; )
      await sleep(20);
    for (const { socket } of this.#open) socket.destroy();
  }

  async #sweeps(): Promise<void> {
    while (this.#again) {
      this.#again = false;
      const bySession = new Map<string, Open[]>();
      for (const entry of this.#open) {
        const id = entry.admission.gatewaySessionId;
        bySession.set(id, [...(bySession.get(id) ?? []), entry]);
      }
      for (const [gatewaySessionId, entries] of bySession) await this.#check(gatewaySessionId, entries);
    }
  }

  async #check(gatewaySessionId: string, entries: Open[]): Promise<void> {
    let now: Admission | undefined;
    let reason = "the workspace no longer runs";
    try {
      now = await admitAgain(this.#db, gatewaySessionId);
    } catch (error) {
      const { code, message } = toSluiceError(error);
      // Without the database nobody can have lost a right: what is open stays.
      if (code === "unavailable" || code === "internal") return;
      reason = message;
    }
    for (const entry of entries) {
      const { socket, admission } = entry;
      const runs = now?.workspace.desired === "running" && now.workspace.endpoint === admission.workspace.endpoint;
      // An editor who has become a viewer keeps no open socket either.
      if (runs && now?.mayWork === admission.mayWork) continue;
      // Forgotten here and not at the `close` event, so that each connection is closed and logged once.
      if (!this.#open.delete(entry)) continue;
      this.#log.info({ workspaceId: admission.workspace.id, gatewaySessionId, reason }, "connection closed");
      socket.destroy();
    }
  }
}
