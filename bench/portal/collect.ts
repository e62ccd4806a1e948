import { once } from "node:events";
import { z } from "zod";

/** Collects the garbage of a Node process that was started with `--inspect=127.0.0.1:<port>`, as its debugger would. */
export async function collectGarbage(port: number): Promise<void> {
  const targets: unknown = await (await fetch(`http://127.0.0.1:${port}/json/list`)).json();
  const [target] = z.tuple([z.object({ webSocketDebuggerUrl: z.string() })], z.unknown()).parse(targets);
  const debug = new WebSocket(target.webSocketDebuggerUrl);
  try {
    await once(debug, "open");
    debug.send(JSON.stringify({ id: 1, method: "HeapProfiler.collectGarbage" }));
    await once(debug, "message");
  } finally {
    debug.close();
  }
}
