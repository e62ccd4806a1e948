import { SluiceError } from "#server/errors.ts";

/** Default maximum size of a request body, bytes. */
export const MAX_BODY_BYTES = 1024 * 1024;

/** The error of a body above the limit. */
export function bodyTooLarge(maxBytes: number): SluiceError {
  return new SluiceError("too-large", `The body is larger than ${formatBytes(maxBytes)}. Send less.`);
}

/** A limit in whole MiB, else in KiB. */
export function formatBytes(bytes: number): string {
  return bytes % MAX_BODY_BYTES === 0 ? `${bytes / MAX_BODY_BYTES} MiB` : `${bytes / 1024} KiB`;
}

/**
 * Reads a whole body; throws `too-large` at the first byte above `maxBytes`, whatever `content-length` says. The rest
 * stays unread and the stream stays open, so that the answer can still be sent.
 */
export async function readBytes(body: Body, maxBytes: number): Promise<Buffer> {
  return await collectBytes(partsOf(body), maxBytes, () => bodyTooLarge(maxBytes));
}

/** All parts as one buffer; throws `tooLarge()` as soon as they hold more than `maxBytes`. */
export async function collectBytes(
  all: AsyncIterable<Uint8Array>,
  maxBytes: number,
  tooLarge: () => Error,
): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of all) {
    size += part.byteLength;
    if (size > maxBytes) throw tooLarge();
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** A request of Node's own server, or the body of a web request. */
type Body =
  | { iterator: (options: { destroyOnReturn: boolean }) => AsyncIterable<Uint8Array> }
  | ReadableStream<Uint8Array>;

function partsOf(body: Body): AsyncIterable<Uint8Array> {
  return body instanceof ReadableStream
    ? body.values({ preventCancel: true })
    : body.iterator({ destroyOnReturn: false });
}
