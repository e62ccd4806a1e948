/** Server-sent events. */

export type StreamEvent = { id?: string; event?: string; data: unknown };

/** Below the idle time-outs of usual reverse proxies. */
const HEARTBEAT_MS = 15_000;

/**
 * Sends what the source yields until it ends, the signal aborts or the browser goes away; then the source's `return` and
 * `onEnd` are called. The source is asked for its next event once the reader has taken the one before, so a reader that
 * takes nothing costs one event, and keeps its place among the streams.
 */
export function eventStream(
  source: AsyncIterable<StreamEvent>,
  signal: AbortSignal,
  onEnd: () => void = () => undefined,
): Response {
  const iterator = source[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  let heartbeat: NodeJS.Timeout | undefined;
  let ended = false;
  let firstEvent: Promise<IteratorResult<StreamEvent>> | undefined;
  const end = () => {
    if (ended) return;
    ended = true;
    clearInterval(heartbeat);
    onEnd();
    iterator.return?.().catch(() => undefined);
  };
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      const send = (text: string) => {
        if (!ended) controller.enqueue(encoder.encode(text));
      };
      heartbeat = setInterval(() => {
        if ((controller.desiredSize ?? 0) > 0) send(": alive\n\n");
      }, HEARTBEAT_MS);
      heartbeat.unref();
      const abort = () => {
        if (ended) return;
        end();
        controller.close();
      };
      if (signal.aborted) return abort();
      signal.addEventListener("abort", abort);
      // The source subscribes before the reader learns that the stream is open. The headers leave with the first bytes.
      firstEvent = iterator.next();
      // Its failure is told when the reader asks.
      firstEvent.catch(() => undefined);
      send(": open\n\n");
    },
    async pull(controller) {
      try {
        const next = await (firstEvent ?? iterator.next());
        firstEvent = undefined;
        if (ended) return;
        if (next.done !== true) return controller.enqueue(encoder.encode(format(next.value)));
        end();
        controller.close();
      } catch (error) {
        if (ended) return;
        end();
        controller.error(error);
      }
    },
    cancel: end,
  });
  return new Response(stream, {
    headers: {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store, no-transform",
      "x-accel-buffering": "no",
    },
  });
}

function format({ id, event, data }: StreamEvent): string {
  const lines = [id === undefined ? [] : [`id: ${id}`], event === undefined ? [] : [`event: ${event}`]].flat();
  return [...lines, `data: ${JSON.stringify(data)}`, "", ""].join("\n");
}
