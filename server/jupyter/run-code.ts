import { type Kernel, KernelManager, type KernelMessage } from "@jupyterlab/services";
import { type JupyterServer, serverSettings } from "./server-settings.ts";

/** Maximum characters that are kept of a kernel's output. */
const MOST_PRINTED = 64 * 1024;

/**
 * Runs `code` in a new kernel, ends the kernel, and returns the first 64 Ki characters of its output, with exceptions.
 * Every wait has an end, because the client library waits for ever on a WebSocket that fails. Throws a sentence.
 */
export async function runCode(
  server: JupyterServer,
  code: string,
  options: { timeoutMs: number; signal?: AbortSignal },
): Promise<string> {
  // It never asks which kernels there are: a list from before ours was started would end ours.
  const manager = new KernelManager({ serverSettings: serverSettings(server), standby: () => true });
  try {
    return await within(runInNewKernel(manager, code), options);
  } finally {
    manager.dispose();
  }
}

async function runInNewKernel(manager: KernelManager, code: string): Promise<string> {
  const kernel = await manager.startNew({ name: "python3" }, { handleComms: false });
  try {
    let printed = "";
    const future = kernel.requestExecute({ code, store_history: false });
    const print = (text: string) => {
      printed += text.slice(0, MOST_PRINTED - printed.length);
    };
    future.onIOPub = (message) => {
      if (is<KernelMessage.IStreamMsg>(message, "stream")) print(message.content.text);
      if (is<KernelMessage.IErrorMsg>(message, "error")) print(`${message.content.ename}: ${message.content.evalue}\n`);
    };
    await Promise.race([future.done, death(kernel)]);
    return printed.trim();
  } finally {
    // Nobody waits for its end: the answer is there already.
    void kernel.shutdown().then(
      () => kernel.dispose(),
      () => kernel.dispose(),
    );
  }
}

/** Rejects when the kernel's process ends; the server would start it again and again. */
export async function death(kernel: Kernel.IKernelConnection): Promise<never> {
  return await new Promise((_, reject) => {
    kernel.statusChanged.connect((_sender, status) => {
      if (status === "dead" || status === "autorestarting") reject(new Error("The kernel ended by itself."));
    });
  });
}

function is<M extends KernelMessage.IIOPubMessage>(message: KernelMessage.IIOPubMessage, type: string): message is M {
  return message.header.msg_type === type;
}

async function within<T>(work: Promise<T>, options: { timeoutMs: number; signal?: AbortSignal }): Promise<T> {
  const timeout = AbortSignal.timeout(options.timeoutMs);
  const limit = options.signal === undefined ? timeout : AbortSignal.any([options.signal, timeout]);
  work.catch(() => undefined);
  return await new Promise<T>((resolve, reject) => {
    const late = () => {
      const calledOff = options.signal?.aborted === true;
      reject(
        new Error(calledOff ? "The start was called off." : `No kernel answered within ${options.timeoutMs / 1000} s.`),
      );
    };
    limit.addEventListener("abort", late, { once: true });
    work.then(resolve, reject);
  });
}
