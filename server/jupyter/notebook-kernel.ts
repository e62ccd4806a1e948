import { type Kernel, KernelManager, type KernelMessage, SessionAPI } from "@jupyterlab/services";
import type { KernelOutput } from "#server/contracts/workspace-kernel.ts";
import { death } from "./run-code.ts";
import { type JupyterServer, onlookerSettings, serverSettings } from "./server-settings.ts";

const START_TIMEOUT_MS = 30_000;
/** Characters of output that one run gives: more than a page shows. */
const MOST_OUTPUT = 4 << 20;
/** Characters that each output counts besides its text: empty outputs take memory too. */
const OUTPUT_COUNTS = 256;

/** Starts a kernel for a notebook of this path, or gives the one that it has. */
export async function startNotebookKernel(server: JupyterServer, path: string): Promise<string> {
  const settings = onlookerSettings(server, START_TIMEOUT_MS);
  const running = (await SessionAPI.listRunning(settings)).find((session) => session.path === path);
  if (running?.kernel != null) return running.kernel.id;
  const name = path.split("/").at(-1) ?? path;
  const kernel = { name: "python3" } as Kernel.IModel;
  const session = await SessionAPI.startSession({ path, name, type: "notebook", kernel }, settings);
  if (session.kernel === null) throw new Error("The session came without a kernel.");
  return session.kernel.id;
}

/** Runs code in a kernel, and gives what comes of it as it comes; the last is `done`. Ends early when `signal` does. */
export async function* runInKernel(
  server: JupyterServer,
  kernelId: string,
  code: string,
  signal: AbortSignal,
): AsyncGenerator<KernelOutput> {
  // It asks for no list: one that comes after the end would be an error that nobody catches.
  const manager = new KernelManager({ serverSettings: serverSettings(server), standby: () => true });
  const queue = new Queue<KernelOutput>();
  const kernel = manager.connectTo({ model: { id: kernelId, name: "python3" }, handleComms: false });
  const end = () => queue.push({ kind: "done", ok: false });
  signal.addEventListener("abort", end);
  if (signal.aborted) end();
  const fail = (text: string) => {
    queue.push({ kind: "error", text });
    end();
  };
  try {
    let connected = false;
    kernel.connectionStatusChanged.connect((_, status) => {
      if (status === "connected") connected = true;
      else if (connected || status === "disconnected") fail("The connection to the notebook was lost.");
    });
    death(kernel).catch(() => fail("The notebook's kernel ended by itself."));
    const future = kernel.requestExecute({ code, store_history: true, stop_on_error: true });
    let size = 0;
    future.onIOPub = (message) => {
      const output = outputOf(message);
      if (output === undefined || size > MOST_OUTPUT) return;
      size += OUTPUT_COUNTS;
      size += charactersOf(output);
      // Not what exceeds the limit: one message may be larger than all output that is shown.
      if (size <= MOST_OUTPUT) queue.push(output);
      else fail("There is more output than is shown here; the code runs on.");
    };
    future.done.then((reply) => queue.push({ kind: "done", ok: reply.content.status === "ok" }), end);
    for (;;) {
      const output = await queue.next();
      yield output;
      if (output.kind === "done") return;
    }
  } finally {
    signal.removeEventListener("abort", end);
    kernel.dispose();
    manager.dispose();
  }
}

function outputOf({ header, content }: KernelMessage.IIOPubMessage): KernelOutput | undefined {
  switch (header.msg_type) {
    case "stream":
      return { kind: "text", text: (content as KernelMessage.IStreamMsg["content"]).text };
    case "error": {
      const { ename, evalue, traceback } = content as KernelMessage.IErrorMsg["content"];
      return { kind: "error", text: plain(traceback.join("\n")) || `${ename}: ${evalue}` };
    }
    case "display_data":
    case "update_display_data":
    case "execute_result": {
      const { data, transient } = content as KernelMessage.IDisplayDataMsg["content"];
      const png = data["image/png"];
      if (typeof png === "string") return { kind: "picture", png: png.replaceAll("\n", "") };
      const text = data["text/plain"];
      if (typeof text !== "string") return undefined;
      const block = transient?.display_id;
      return { kind: "text", text: `${text}\n`, ...(typeof block === "string" ? { block } : {}) };
    }
    default:
      return undefined;
  }
}

/** All that a message may make long. */
function charactersOf(output: KernelOutput): number {
  switch (output.kind) {
    case "text":
      return output.text.length + (output.block?.length ?? 0);
    case "picture":
      return output.png.length;
    case "error":
      return output.text.length;
    case "done":
      return 0;
  }
}

/** Without the colors of a terminal. */
function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: such a color begins with one
  return text.replaceAll(/\u001b\[[0-9;]*m/g, "");
}

/** What is pushed is waited for by one. */
class Queue<T> {
  readonly #items: T[] = [];
  #wake: (() => void) | undefined;

  push(item: T): void {
    this.#items.push(item);
    this.#wake?.();
  }

  async next(): Promise<T> {
    for (;;) {
      const item = this.#items.shift();
      if (item !== undefined) return item;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
