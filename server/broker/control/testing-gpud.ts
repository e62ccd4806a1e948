/**
 * A gpud that speaks the control channel and has no device behind it: for tests of the broker and for the benchmark
 * of its decisions. It parks nothing and ends what it is told to end.
 */
import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import WebSocket from "ws";
import {
  type BrokerMessage,
  brokerMessage,
  type DeviceReport,
  type GpudMessage,
  joinAnswer,
  type LeaseUsage,
} from "#server/contracts/control.ts";

export type SimulatedGpud = {
  serverId: string;
  /** Every message of the broker, oldest first. */
  received: BrokerMessage[];
  send: (message: GpudMessage) => void;
  /** Connects (again); settles at `welcome`. */
  connect: () => Promise<void>;
  /** Cuts the connection, as a killed process would. */
  cut: () => void;
  /** What the next hello says is held here. */
  held: Map<string, LeaseUsage>;
  close: () => void;
};

export type SimulatedGpudOptions = {
  brokerUrl: () => string;
  joinToken: string;
  name: string;
  devices: number;
  gpuType?: string;
  memoryBytes?: number;
  /** Answers `end-lease` by itself (default) or leaves that to the test. */
  answers?: boolean;
  /** Connects again by itself when the connection is lost. */
  reconnects?: boolean;
  dataAddress?: string;
  /** The token of a pod's account on a cluster. */
  account?: string;
};

export async function joinSimulatedGpud(options: SimulatedGpudOptions): Promise<SimulatedGpud> {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const x = publicKey.export({ format: "jwk" }).x ?? "";
  const response = await fetch(`${options.brokerUrl()}/v1/gpu-servers/join`, {
    method: "POST",
    body: JSON.stringify({ token: options.joinToken, name: options.name, publicKey: x }),
  });
  if (!response.ok) throw new Error(`join: ${response.status} ${await response.text()}`);
  const { serverId } = joinAnswer.parse(await response.json());
  const simulated = new Simulated(options, serverId, privateKey);
  await simulated.connect();
  return simulated;
}

class Simulated implements SimulatedGpud {
  readonly serverId: string;
  readonly received: BrokerMessage[] = [];
  readonly held = new Map<string, LeaseUsage>();
  readonly #options: SimulatedGpudOptions;
  readonly #key: KeyObject;
  #socket: WebSocket | undefined;
  #closed = false;

  constructor(options: SimulatedGpudOptions, serverId: string, key: KeyObject) {
    this.#options = options;
    this.serverId = serverId;
    this.#key = key;
  }

  async connect(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const socket = new WebSocket(`${this.#options.brokerUrl().replace(/^http/, "ws")}/v1/control`);
      this.#socket = socket;
      socket.on("message", (data: Buffer) => {
        const message = brokerMessage.parse(JSON.parse(data.toString("utf8")));
        this.received.push(message);
        this.#answer(message);
        if (message.type === "welcome") resolve();
      });
      socket.once("error", reject);
      socket.once("close", (code, reason) => {
        reject(new Error(`closed: ${code} ${reason.toString()}`));
        if (this.#options.reconnects && !this.#closed) this.#reconnect();
      });
    });
  }

  #reconnect(): void {
    setTimeout(() => {
      if (!this.#closed) this.connect().catch(() => undefined);
    }, 200);
  }

  send(message: GpudMessage): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  cut(): void {
    this.#socket?.terminate();
  }

  close(): void {
    this.#closed = true;
    this.#socket?.close();
  }

  #answer(message: BrokerMessage): void {
    if (message.type === "challenge") this.#hello(message.nonce);
    if (message.type === "ping") this.send({ type: "pong", nonce: message.nonce });
    if (message.type === "removed") this.#closed = true;
    if (message.type === "end-lease" && this.#options.answers !== false) {
      this.held.delete(message.leaseId);
      this.send({ type: "lease-ended", leaseId: message.leaseId, parkedBytes: 0, gpuTimeUs: 0 });
    }
  }

  #hello(nonce: string): void {
    const signed = Buffer.concat([Buffer.from("sluice-control-1"), Buffer.from(nonce, "base64url")]);
    this.send({
      type: "hello",
      serverId: this.serverId,
      version: "0.1.0",
      protocol: 2,
      signature: sign(null, signed, this.#key).toString("base64url"),
      dataAddress: this.#options.dataAddress ?? "tcp://127.0.0.1:1",
      tlsFingerprint: null,
      ...(this.#options.account !== undefined && { account: this.#options.account }),
      devices: Array.from({ length: this.#options.devices }, (_, index) => this.#device(index)),
      held: [...this.held.values()],
    });
  }

  #device(index: number): DeviceReport {
    const memoryBytes = this.#options.memoryBytes ?? 8 * 1024 ** 3;
    return {
      uuid: `GPU-${this.serverId}-${index}`,
      index,
      gpuType: this.#options.gpuType ?? "soft",
      model: "Simulated",
      memoryBytes,
      profile: {
        name: "Simulated",
        computeCapabilityMajor: 7,
        computeCapabilityMinor: 5,
        totalMemoryBytes: memoryBytes,
        driverVersion: 13_050,
        attributes: {},
      },
    };
  }
}

/** A usage record with nothing used. */
export function noUsage(leaseId: string, sessions = 1): LeaseUsage {
  return {
    leaseId,
    sessions,
    memoryBytes: 0,
    parkedBytes: 0,
    ...{ gpuTimeUs: 0, deliveredUs: 0, promisedUs: 0, calls: 0, bytesIn: 0, bytesOut: 0 },
    ...{ smActivity: null, running: null },
  };
}
