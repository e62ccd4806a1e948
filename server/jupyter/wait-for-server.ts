import { setTimeout as sleep } from "node:timers/promises";
import { baseUrlOf, fetchOf } from "./endpoint.ts";

/**
 * Settles when the Jupyter server answers to its token. `stillRuns` is asked between attempts, so that a server that
 * ended is noticed at once; throws a sentence when it ended or does not answer in time.
 */
export async function waitForServer(
  server: { endpoint: string; token: string },
  options: { stillRuns: () => Promise<boolean>; timeoutMs: number; signal: AbortSignal },
): Promise<void> {
  const deadline = performance.now() + options.timeoutMs;
  const ask = fetchOf(server.endpoint);
  while (performance.now() < deadline) {
    options.signal.throwIfAborted();
    const status = await ask(`${baseUrlOf(server.endpoint)}/api/status`, {
      headers: { authorization: `token ${server.token}` },
      signal: AbortSignal.timeout(2_000),
    }).then(
      (answer) => answer.status,
      () => undefined,
    );
    if (status === 200) return;
    if (status === 401 || status === 403) throw new Error("Another program answers in place of the Jupyter server.");
    if (!(await options.stillRuns())) throw new Error("The Jupyter server ended while it started.");
    await sleep(40);
  }
  throw new Error(`The Jupyter server did not answer within ${options.timeoutMs / 1000} s.`);
}
