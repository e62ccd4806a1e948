/** Finds a process that runs and no longer answers, as with an event loop that is busy for good. */
import { type ClientRequest, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { Listening } from "#server/broker/listening.ts";
import { egressHealthSocket } from "#server/egress/health.ts";
import { readAnswer } from "#server/http/bounded-answer.ts";
import { unixEndpoint, WorkspaceAgent } from "#server/jupyter/endpoint.ts";

/** Time without an answer after which a process counts as stalled. */
export const SILENT_MS = 10_000;
/** Time from launch to the first answer. */
const START_MS = 60_000;
/** Pause between questions. */
const ASK_MS = 2_000;

/** Longest answer that is read; the port of a process can be another program's. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** Where a process answers `/healthz`. */
export type HealthAddress = { host: string; port: number; isTls?: boolean } | { socketPath: string };

/** Settles when the process answers, whatever the answer is; rejects when there is no answer. */
export type Ask = (signal: AbortSignal) => Promise<void>;

export type WatchdogOptions = {
  ask: Ask;
  silentMs?: number;
  startMs?: number;
  askMs?: number;
};

/** Asks one process, run after run. */
export class Watchdog {
  readonly #options: Required<WatchdogOptions>;
  /** No run is ended at an address that never answered: the address may be wrong. */
  #hasAnswered = false;

  constructor(options: WatchdogOptions) {
    this.#options = { silentMs: SILENT_MS, startMs: START_MS, askMs: ASK_MS, ...options };
  }

  get silentMs(): number {
    return this.#options.silentMs;
  }

  /**
   * Watches a run that has just been launched, until `stop` is called or the run stalls: then `onStall` is called once.
   * A break of this process's own clock (a suspended machine, a stopped supervisor) starts the time anew.
   */
  watch(onStall: () => void): { stop: () => void } {
    const { ask, silentMs, startMs, askMs } = this.#options;
    const stopped = new AbortController();
    const listening = new Listening();
    const looking = listening.start();
    let isUp = false;
    /** Time of the first question without an answer. */
    let unansweredSince: number | undefined = Date.now();

    const askForEver = async (): Promise<void> => {
      while (!stopped.signal.aborted) {
        unansweredSince ??= Date.now();
        const signal = AbortSignal.any([stopped.signal, AbortSignal.timeout(silentMs)]);
        const hasAnswered = await ask(signal).then(
          () => true,
          () => false,
        );
        if (hasAnswered) {
          isUp = true;
          this.#hasAnswered = true;
          unansweredSince = undefined;
        }
        await sleep(askMs, undefined, { signal: stopped.signal }).catch(() => undefined);
      }
    };
    const look = (): void => {
      const now = Date.now();
      const heardBreak = listening.since(now);
      if (unansweredSince === undefined || !this.#hasAnswered) return;
      if (now - Math.max(unansweredSince, heardBreak) < (isUp ? silentMs : startMs)) return;
      stop();
      onStall();
    };
    const timer = setInterval(look, Math.min(500, silentMs / 4));
    const stop = (): void => {
      stopped.abort();
      looking.stop();
      clearInterval(timer);
    };
    void askForEver();
    return { stop };
  }
}

type Ports = { portalPort: number; brokerPort: number; gatewayPort: number };

/** The watchdog of a process of `npm start`; undefined for gpud, which does not speak HTTP. */
export function watchdogOf(name: string, ports: Ports, env: NodeJS.ProcessEnv): Watchdog | undefined {
  const host = addressOf(env.SLUICE_LISTEN);
  const { SLUICE_STATE_DIR: stateDir } = env;
  const addresses: Record<string, HealthAddress | undefined> = {
    portal: { host: "127.0.0.1", port: ports.portalPort },
    broker: { host, port: ports.brokerPort, isTls: Boolean(env.SLUICE_BROKER_TLS_CERTIFICATE) },
    gateway: { host, port: ports.gatewayPort },
    egress: stateDir === undefined ? undefined : { socketPath: egressHealthSocket(stateDir) },
  };
  const address = addresses[name];
  return address && new Watchdog({ ask: askHealth(address) });
}

/** Where this machine reaches a process that listens there; all addresses of a machine include the loopback. */
function addressOf(listen = ""): string {
  return ["", "0.0.0.0", "::"].includes(listen) ? "127.0.0.1" : listen;
}

/** Asks for `/healthz`. The certificate is not checked: the question holds no secret, and any answer will do. */
export function askHealth(address: HealthAddress): Ask {
  return async (signal) =>
    await new Promise<void>((resolve, reject) => {
      const request = requestTo(address, signal);
      request.on("response", (response) => {
        void readAnswer(response, MAX_ANSWER_BYTES).catch(() => undefined);
        resolve();
      });
      request.on("error", reject);
      request.end();
    });
}

function requestTo(address: HealthAddress, signal: AbortSignal): ClientRequest {
  const asked = { path: "/healthz", signal };
  if ("socketPath" in address) {
    const agent = new WorkspaceAgent({ keepAlive: false }, unixEndpoint(address.socketPath));
    return requestHttp({ ...asked, host: "localhost", agent });
  }
  const { isTls = false, ...at } = address;
  const options = { ...asked, ...at, agent: false as const };
  return isTls ? requestHttps({ ...options, rejectUnauthorized: false }) : requestHttp(options);
}
