/** A team member at one notebook: saves it, borrows a share in a cell, and starts again whatever has ended. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";
import { type APIRequestContext, expect } from "@playwright/test";
import { change, runByApi, type Workspace } from "../../../e2e/fixtures/api.ts";
import type { Lab } from "./lab.ts";

const TURN = readFileSync(path.join(import.meta.dirname, "turn.py"), "utf8");
const AMOUNTS = ["0.25", "0.5", "0.5", "0.75", "1"];
const WAIT_SECONDS = 30;
/** A cell ends within this time, whatever is killed: its wait is over after 30 s, and lost GPUs are told of. */
const TURN_MS = 180_000;
const REQUEST_MS = 20_000;

export type Desk = {
  api: APIRequestContext;
  workspaceId: string;
  lab: Lab;
  /** Of the notebook, without its ending. */
  name: string;
  random: () => number;
  /** Hears of what must never happen. */
  onFinding: (finding: string) => void;
};

export class Member {
  readonly desk: Desk;
  /** Why turns were not finished, in the order of their first time; kills make that happen. */
  readonly failures = new Map<string, number>();
  turns = 0;
  /** The version of the notebook that was sent last, and the last one that the server confirmed. */
  #sent = 0;
  #confirmed = 0;

  constructor(desk: Desk) {
    this.desk = desk;
  }

  get notebook(): string {
    return `${this.desk.name}.ipynb`;
  }

  /** The file in the home in which turns say when they computed on which lease. */
  get record(): string {
    return `${this.desk.name}.jsonl`;
  }

  /** Works until the signal; the turn under way is finished. */
  async work(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const amount = AMOUNTS[Math.floor(this.desk.random() * AMOUNTS.length)] ?? "0.5";
      const holdSeconds = 0.1 + this.desk.random() * 0.5;
      try {
        await this.keepRunning();
        await this.save();
        await this.turn(amount, holdSeconds);
      } catch (error) {
        this.#count(error instanceof Error ? error.message : String(error));
        await sleep(500);
      }
    }
  }

  /** Borrows, computes and gives back; throws if that did not work to its end. */
  async turn(amount: string, holdSeconds: number): Promise<void> {
    const { api, workspaceId, name, onFinding } = this.desk;
    const values = `AMOUNT, HOLD_SECONDS, WAIT_SECONDS, RECORD = "${amount}", ${holdSeconds}, ${WAIT_SECONDS}, "${this.record}"`;
    const began = performance.now();
    const stream = await runByApi(api, workspaceId, this.notebook, `${values}\n${TURN}`, TURN_MS).catch(
      async (error: unknown) => {
        if (performance.now() - began < TURN_MS) throw error;
        onFinding(`a cell of ${name} did not end within ${TURN_MS / 1000} s`);
        await this.#restartKernel();
        throw error;
      },
    );
    if (stream.includes("WRONG WORDS")) onFinding(`${name} read wrong words from its GPU`);
    if (!stream.includes("turn done")) throw new Error(lastError(stream));
    this.turns += 1;
  }

  async save(): Promise<void> {
    this.#sent += 1;
    const version = this.#sent;
    await this.desk.lab.save(this.notebook, String(version));
    this.#confirmed = version;
  }

  /** Reads the notebook; throws if it is older than what the server confirmed, or is nothing that was ever sent. */
  async checkNotebook(): Promise<void> {
    const text = await this.desk.lab.read(this.notebook);
    const version = Number(text);
    expect(Number.isInteger(version) && version >= this.#confirmed && version <= this.#sent, `"${text}"`).toBe(true);
  }

  async workspace(): Promise<Workspace> {
    const answer = await this.desk.api.get(`/api/v1/workspaces/${this.desk.workspaceId}`, { timeout: REQUEST_MS });
    if (!answer.ok()) throw new Error(`the workspace cannot be read: HTTP ${answer.status()}`);
    return (await answer.json()) as Workspace;
  }

  /** Starts the workspace where it has failed, and waits until it runs. */
  async keepRunning(): Promise<void> {
    const { observed, desired } = await this.workspace();
    if (observed === "running") return;
    if (observed === "failed" || desired !== "running") await this.#post("/start");
    await sleep(1_000);
    throw new Error(`the workspace is ${observed}`);
  }

  async #restartKernel(): Promise<void> {
    const kernel = { path: this.notebook };
    const { kernelId } = await this.#post<{ kernelId: string }>("/kernels", kernel);
    await change(this.desk.api, "delete", `/workspaces/${this.desk.workspaceId}/kernels/${kernelId}`);
  }

  async #post<T>(what: string, data: Record<string, unknown> = {}): Promise<T> {
    return await change<T>(this.desk.api, "post", `/workspaces/${this.desk.workspaceId}${what}`, data);
  }

  #count(message: string): void {
    const line = stripVTControlCharacters(message).split("\n")[0] ?? "";
    const kind = line.replaceAll(/\b[a-z]{2,4}-[0-9a-z]{26}|(?<!HTTP )\b\d+/g, "#").slice(0, 160);
    this.failures.set(kind, (this.failures.get(kind) ?? 0) + 1);
  }
}

/** The last line of what the cell said instead of its result. */
function lastError(stream: string): string {
  const events = stream.split("\n").filter((line) => line.startsWith("data: "));
  const outputs = events.map((line) => JSON.parse(line.slice("data: ".length)) as { kind: string; text?: string });
  const text = outputs.findLast(({ kind }) => kind === "error")?.text ?? "the run ended without a result";
  return text.trim().split("\n").at(-1) ?? text;
}
