import { runCode } from "./run-code.ts";
import type { JupyterServer } from "./server-settings.ts";

/** Proves that notebooks work: a kernel starts, computes and ends. Throws a sentence for a person. */
export async function tryFirstKernel(
  server: JupyterServer,
  options: { timeoutMs: number; signal: AbortSignal },
): Promise<void> {
  const answer = await runCode(server, "print(6 * 7)", options);
  if (answer !== "42") throw new Error(`The first kernel answered "${answer.slice(0, 500)}" to 6 * 7.`);
}
