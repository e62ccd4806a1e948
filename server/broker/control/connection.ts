/**
 * One gpud's control connection. The tables are the truth: this only carries them to gpud and back, so another broker
 * can take over at any message.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { and, eq } from "drizzle-orm";
import type { WebSocket } from "ws";
import type { Context } from "#server/context.ts";
import { type BrokerMessage, type GpudMessage, gpudMessage, type LeaseUsage } from "#server/contracts/control.ts";
import type { Database } from "#server/db/client.ts";
import { gpuServers, leases } from "#server/db/schema/index.ts";
import { toSluiceError } from "#server/errors.ts";
import type { ClusterAccount } from "#server/launchers/kubernetes/cluster-account.ts";
import { type Logger, newTraceId } from "#server/log.ts";
import { connect, type Hello } from "#server/services/gpu-server/connect.ts";
import { lose } from "#server/services/gpu-server/lose.ts";
import { accountOf } from "#server/services/gpu-server/pod-of.ts";
import { seen } from "#server/services/gpu-server/seen.ts";
import { advanceTogether } from "#server/services/lease/advance-together.ts";
import { claim } from "#server/services/lease/claim.ts";
import { confirmEnds, type SaidOfEnd } from "#server/services/lease/confirm-end.ts";
import { disconnect } from "#server/services/lease/disconnect.ts";
import { dropParked } from "#server/services/lease/drop-parked.ts";
import { endSentence } from "#server/services/lease/ending.ts";
import { recordUsage } from "#server/services/lease/record-usage.ts";
import type { Signer } from "#server/services/lease/signer.ts";
import { within } from "#server/within.ts";
import { Listening } from "../listening.ts";
import { newChallenge, provesKey } from "./identity.ts";
import { RoundTrip } from "./round-trip.ts";

const HELLO_MS = 10_000;
/** So long the cluster has to say whose a gpud's token is. */
const ACCOUNT_MS = 3_000;
const RETRY_MS = 500;
const PING_MS = 2_000;
const SILENT_MS = 10_000;
/** `end-lease` is said again until it is answered. */
const REPEAT_END_MS = 2_000;
/** A gpud that pings and does not end a lease for so long is made to connect anew. */
const STUCK_END_MS = 30_000;

/** Maximum messages of one gpud that wait for the database. Above it the connection ends, and gpud connects again. */
const MOST_WAITING = { messages: 10_000, bytes: 16 * 1024 * 1024 };
/** Maximum before a connection has proved its key: gpud sends its hello and waits for the welcome. */
const MOST_UNPROVED = { messages: 2, bytes: 1024 * 1024 };
/** Maximum leases for which one gpud reports sessions. */
const MOST_LEASES = 10_000;

export type ConnectionOptions = {
  socket: WebSocket;
  db: Database;
  signer: Signer;
  log: Logger;
  /** Called when the connection has a server's identity, and when it ends. */
  onOpen: (serverId: string, connection: ControlConnection) => void;
  onClose: (connection: ControlConnection) => void;
};

export class ControlConnection {
  readonly #socket: WebSocket;
  readonly #db: Database;
  readonly #signer: Signer;
  #log: Logger;
  readonly #options: ConnectionOptions;
  readonly #challenge = newChallenge();
  #serverId: string | undefined;
  #epoch = 0;
  #lastHeard = new Date();
  readonly #listening = new Listening();
  /** Lease → connected client processes, as gpud counts them. */
  readonly #sessions = new Map<string, number>();
  /** Lease → when it was last told to end. */
  readonly #toldToEnd = new Map<string, number>();
  /** Ends that gpud has confirmed and that are not written yet. */
  readonly #ends = new Map<string, SaidOfEnd>();
  readonly #timers: NodeJS.Timeout[] = [];
  #work: Promise<void> = Promise.resolve();
  readonly #waiting = { messages: 0, bytes: 0 };
  /** The last ping that is not answered yet. */
  #ping: { nonce: string; at: number } | undefined;
  readonly #roundTrip = new RoundTrip();
  #scanning = false;
  /** More was to be ended while the leases were read. */
  #scanAgain = false;
  /** This side ended the connection: gpud is not lost by that. */
  #hungUp = false;
  #isSilent = true;
  #isProved = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#socket = options.socket;
    this.#db = options.db;
    this.#signer = options.signer;
    this.#log = options.log;
    this.#timers.push(setTimeout(() => this.#expectHello(), HELLO_MS));
    this.#socket.on("message", (data: Buffer) => this.#receive(data));
    this.#socket.on("error", (error) => this.#log.warn({ err: error }, "control connection"));
    this.#socket.once("close", () => this.#closed());
    this.#send({ type: "challenge", nonce: this.#challenge });
  }

  get serverId(): string | undefined {
    return this.#serverId;
  }

  get isSilent(): boolean {
    return this.#isSilent;
  }

  get isProved(): boolean {
    return this.#isProved;
  }

  drop(): void {
    this.#hungUp = true;
    this.#socket.terminate();
  }

  /** Hangs up; gpud connects again by itself, and if it does not, liveness finds it silent. */
  close(code = 1001, reason = "broker stops"): void {
    this.#hungUp = true;
    this.#end(code, reason);
  }

  /** Ends the connection of a client that breaks the protocol. It may be replaced at once by a new one. */
  #refuse(reason: string): void {
    this.#isSilent = true;
    this.#end(1008, reason);
  }

  /** A client that does not answer the close loses its socket. */
  #end(code: number, reason: string): void {
    this.#socket.close(code, reason);
    setTimeout(() => this.#socket.terminate(), 1_000).unref();
  }

  #send(message: BrokerMessage): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #context(serverId: string): Context {
    return { db: this.#db, principal: { kind: "gpud", serverId }, now: () => new Date(), traceId: newTraceId() };
  }

  /** Messages are worked off one after the other, in gpud's order. */
  #receive(data: Buffer): void {
    this.#lastHeard = new Date();
    if (this.#isTooMuch(data.length)) {
      this.#log.warn({ waiting: this.#waiting }, "gpud sends more than the broker can take; the connection ends");
      this.drop();
      return;
    }
    let message: GpudMessage;
    try {
      message = gpudMessage.parse(JSON.parse(data.toString("utf8")));
    } catch (error) {
      this.#log.warn({ err: error }, "gpud sent a message that is not one");
      this.#refuse("bad message");
      return;
    }
    if (this.#serverId === undefined && message.type === "pong") {
      this.#refuse("hello first");
      return;
    }
    this.#isSilent = false;
    if (message.type === "pong") {
      this.#measure(message.nonce);
      return;
    }
    if (message.type === "lease-ended") {
      this.#ends.set(message.leaseId, { parkedBytes: message.parkedBytes, gpuTimeUs: message.gpuTimeUs });
    }
    this.#waiting.messages += 1;
    this.#waiting.bytes += data.length;
    this.#work = this.#work
      .then(async () => await this.#take(message))
      .finally(() => {
        this.#waiting.messages -= 1;
        this.#waiting.bytes -= data.length;
      });
  }

  #isTooMuch(bytes: number): boolean {
    const limit = this.#serverId === undefined ? MOST_UNPROVED : MOST_WAITING;
    return this.#waiting.messages >= limit.messages || this.#waiting.bytes + bytes > limit.bytes;
  }

  /** While the database is away messages wait, usage excepted: it comes again, with totals. */
  async #take(message: GpudMessage): Promise<void> {
    for (;;) {
      try {
        return await this.#handle(message);
      } catch (error) {
        const away = toSluiceError(error).code === "unavailable";
        this.#log.warn({ err: error, message: message.type }, "control message could not be taken");
        if (!away) return this.close(1011, "try again");
        const pointless = message.type === "usage" || (message.type === "hello" && this.#gone());
        if (pointless || this.#hungUp) return;
        await sleep(RETRY_MS);
      }
    }
  }

  async #handle(message: GpudMessage): Promise<void> {
    if (message.type === "hello") return await this.#hello(message);
    const serverId = this.#serverId;
    if (serverId === undefined) return this.#refuse("hello first");
    const ctx = this.#context(serverId);
    switch (message.type) {
      case "usage":
        for (const usage of message.leases) this.#count(usage);
        return await recordUsage(ctx, { serverId, usages: message.leases });
      case "session-opened":
        this.#setSessions(message.leaseId, (this.#sessions.get(message.leaseId) ?? 0) + 1);
        if (!(await claim(ctx, { serverId, leaseId: message.leaseId }))) {
          const reason = "This GPU is no longer yours. Run %gpu attach to borrow one again.";
          this.#send({ type: "end-lease", leaseId: message.leaseId, mode: "kill", reason });
        }
        return;
      case "session-closed": {
        const left = Math.max(0, (this.#sessions.get(message.leaseId) ?? 1) - 1);
        this.#setSessions(message.leaseId, left);
        if (left === 0) await disconnect(ctx, { serverId, leaseId: message.leaseId, clean: message.clean });
        return;
      }
      case "lease-ended":
        this.#sessions.delete(message.leaseId);
        this.#toldToEnd.delete(message.leaseId);
        // Those that came while this one waited for its turn are written with it.
        if (this.#ends.size === 0) return;
        return await this.#confirm(ctx, serverId);
      case "pong":
        return;
    }
  }

  async #confirm(ctx: Context, serverId: string): Promise<void> {
    const ends = new Map(this.#ends);
    const types = await confirmEnds(ctx, { serverId, ends });
    for (const leaseId of ends.keys()) this.#ends.delete(leaseId);
    // What gpud says next does not wait for those in the queue; if this fails, whoever looks after the queues does it.
    for (const gpuType of types) {
      advanceTogether(this.#db, gpuType).catch((error: unknown) =>
        this.#log.warn({ err: error, gpuType }, "a queue could not go on after leases had ended"),
      );
    }
  }

  /** The way to the server and back, as far as it can be told from here. */
  #measure(nonce: string): void {
    if (this.#ping?.nonce !== nonce) return;
    this.#roundTrip.add(performance.now() - this.#ping.at);
    this.#ping = undefined;
  }

  #gone(): boolean {
    return this.#socket.readyState !== this.#socket.OPEN;
  }

  #count(usage: LeaseUsage): void {
    this.#setSessions(usage.leaseId, usage.sessions);
  }

  #setSessions(leaseId: string, sessions: number): void {
    if (this.#sessions.size >= MOST_LEASES && !this.#sessions.has(leaseId)) {
      this.close(1008, "too many leases");
      return;
    }
    this.#sessions.set(leaseId, sessions);
  }

  async #hello(hello: Hello): Promise<void> {
    if (this.#serverId !== undefined) return this.#refuse("hello twice");
    const [server] = await this.#db.select().from(gpuServers).where(eq(gpuServers.id, hello.serverId)).limit(1);
    if (server === undefined || !provesKey(server.publicKey, this.#challenge, hello.signature)) {
      this.#log.warn({ serverId: hello.serverId }, "a gpud did not prove its key");
      return this.#refuse("not this server's key");
    }
    this.#isProved = true;
    if (server.state === "removed") return this.#remove();
    const account = await this.#accountOf(hello);
    // What it says is old by now, and it may have come again meanwhile.
    if (this.#gone() || this.#hungUp) return;
    const connected = await connect(this.#context(server.id), hello, account);
    this.#lastHeard = new Date();
    this.#serverId = server.id;
    this.#epoch = connected.epoch;
    this.#log = this.#log.child({ serverId: server.id, server: connected.name });
    await this.#recount(server.id, hello.held);
    // Timers set after the connection has closed would never end. `#closed` reports the loss.
    if (this.#gone()) return;
    this.#send({
      type: "welcome",
      serverId: server.id,
      epoch: connected.epoch,
      keys: { [this.#signer.kid]: this.#signer.publicKey },
      leases: connected.leases,
    });
    this.#log.info({ devices: hello.devices.length, leases: connected.leases.length }, "gpud connected");
    this.#options.onOpen(server.id, this);
    this.#timers.push(setInterval(() => this.#tick(), PING_MS));
    await recordUsage(this.#context(server.id), { serverId: server.id, usages: hello.held });
    this.endLeases();
  }

  /** Where gpud runs on the cluster. It connects also while the cluster does not answer, and is where it was then. */
  async #accountOf({ account }: Hello): Promise<ClusterAccount | undefined> {
    if (account === undefined) return undefined;
    try {
      return await within(ACCOUNT_MS, accountOf(account), () => {
        throw new Error("The cluster has not answered in time.");
      });
    } catch (error) {
      this.#log.warn({ err: error }, "the cluster did not say whose a gpud's token is");
      return undefined;
    }
  }

  /** Connections may have come and gone while nobody listened. */
  async #recount(serverId: string, held: LeaseUsage[]): Promise<void> {
    const ctx = this.#context(serverId);
    for (const usage of held) {
      const { leaseId } = usage;
      this.#count(usage);
      if (usage.sessions > 0) await claim(ctx, { serverId, leaseId });
      else await disconnect(ctx, { serverId, leaseId, clean: false });
    }
  }

  #expectHello(): void {
    if (this.#serverId === undefined) this.close(1008, "no hello");
  }

  #remove(): void {
    this.#hungUp = true;
    this.#send({ type: "removed", reason: "This GPU server was removed from the pool by an admin." });
    this.#socket.close(1008, "removed");
  }

  #tick(): void {
    const now = Date.now();
    if (now - Math.max(this.#lastHeard.getTime(), this.#listening.since(now)) > SILENT_MS) {
      this.#socket.terminate();
      return;
    }
    this.#ping = { nonce: randomUUID(), at: performance.now() };
    this.#send({ type: "ping", nonce: this.#ping.nonce });
    this.endLeases();
    const serverId = this.#serverId;
    if (serverId === undefined || now - this.#lastHeard.getTime() > 2 * PING_MS) return;
    seen(this.#context(serverId), { serverId, at: this.#lastHeard, rttUs: this.#roundTrip.microseconds() })
      .then(async (server) => {
        this.#check(server);
        for (const leaseId of await dropParked(this.#context(serverId), { serverId })) {
          this.#send({ type: "drop-parked", leaseId });
        }
      })
      .catch((error: unknown) => this.#log.warn({ err: error }, "a sign of life could not be written"));
  }

  /** The tables may have changed under a connection that goes on: removed, lost in between, or fenced. */
  #check(server: { state: string; epoch: number } | undefined): void {
    if (server === undefined || server.state === "removed") this.#remove();
    else if (server.state === "lost" || server.epoch !== this.#epoch) this.close(1012, "say hello again");
  }

  /** Tells gpud of every lease on it that is to end. Called on events, and on every tick for those that got lost. */
  endLeases(): void {
    const serverId = this.#serverId;
    if (serverId === undefined) return;
    if (this.#scanning) {
      this.#scanAgain = true;
      return;
    }
    this.#scanning = true;
    this.#scan(serverId)
      .catch((error: unknown) => this.#log.warn({ err: error }, "leases to end could not be read"))
      .finally(() => {
        this.#scanning = false;
        if (!this.#scanAgain) return;
        this.#scanAgain = false;
        this.endLeases();
      });
  }

  async #scan(serverId: string): Promise<void> {
    const { id, endMode, endReason, endNote, endingAt } = leases;
    const ending = await this.#db
      .select({ id, endMode, endReason, endNote, endingAt })
      .from(leases)
      .where(and(eq(leases.serverId, serverId), eq(leases.state, "ending")));
    const now = performance.now();
    for (const lease of ending) {
      if (now - (this.#toldToEnd.get(lease.id) ?? Number.NEGATIVE_INFINITY) < REPEAT_END_MS) continue;
      if (
        lease.endingAt !== null &&
        Date.now() - lease.endingAt.getTime() > STUCK_END_MS &&
        this.#toldToEnd.has(lease.id)
      ) {
        this.#log.warn({ leaseId: lease.id }, "gpud does not end a lease; it is asked to connect anew");
        return this.close(1012, "say hello again");
      }
      this.#toldToEnd.set(lease.id, now);
      const reason = endSentence(lease.endReason, lease.endNote);
      this.#send({ type: "end-lease", leaseId: lease.id, mode: lease.endMode ?? "kill", reason });
    }
  }

  /** Looks whether an admin has removed the server. */
  checkRemoved(): void {
    const serverId = this.#serverId;
    if (serverId === undefined) return;
    this.#db
      .select({ state: gpuServers.state, epoch: gpuServers.epoch })
      .from(gpuServers)
      .where(eq(gpuServers.id, serverId))
      .then(([server]) => {
        if (server === undefined || server.state === "removed") this.#remove();
      })
      .catch((error: unknown) => this.#log.warn({ err: error }, "the server's state could not be read"));
  }

  #closed(): void {
    for (const timer of this.#timers) clearInterval(timer);
    this.#options.onClose(this);
    this.#work = this.#work
      .then(async () => {
        // Read after the messages before: a hello in progress gives the connection its server.
        const serverId = this.#serverId;
        if (serverId === undefined || this.#hungUp) return;
        this.#log.warn("gpud's control connection ended");
        await lose(this.#context(serverId), { serverId, lastHeard: this.#lastHeard });
      })
      .catch((error: unknown) => this.#log.warn({ err: error }, "the loss could not be written; liveness will see it"));
  }

  /** Settles when all messages received so far are written. */
  async settled(): Promise<void> {
    await this.#work;
  }
}
