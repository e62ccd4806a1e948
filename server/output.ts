/** Output of a long-running process that outlives a full disk. */
import { fstatSync, renameSync, statSync } from "node:fs";
import { isatty } from "node:tty";
import pino from "pino";

/** Lines that wait for space on the disk, bytes; further lines are dropped and counted. */
const WAITING_BYTES = 1024 * 1024;
/** Pause between attempts to write while no new line comes. */
const RETRY_MS = 1_000;
const TOO_LONG = "longer than 1 MiB";

export type Output = {
  /** Writes whole lines. Never throws. */
  write: (lines: string) => void;
  /** Closes the output; lines that come later are lost. */
  end: () => void;
};

/** Size in bytes from which a file is renamed, and the number of renamed files that stay. */
export type Rotation = { maxBytes: number; earlier: number };

/**
 * Opens a file descriptor, or a file to append to. A line that cannot be written does not end the process: up to 1 MiB
 * of lines wait, further lines are dropped, and `report` makes the line that counts the dropped ones once all waiting
 * lines are written. With `rotation`, a file that is large enough becomes `<file>.1`, and that one `<file>.2`. Throws when
 * the file cannot be opened.
 */
export function outputTo(
  dest: number | string,
  report: (message: string) => string = (message) => message,
  rotation?: Rotation,
): Output {
  const stream = pino.destination({ dest, sync: true, append: true, maxLength: WAITING_BYTES });
  let dropped = 0;
  let reason = TOO_LONG;
  let retrying: NodeJS.Timeout | undefined;
  let isOpen = true;
  /** Bytes of the file, without those that a full disk has not taken yet. */
  let bytes = typeof dest === "string" ? (sizeOf(dest) ?? 0) : 0;
  stream.on("error", (error: NodeJS.ErrnoException) => {
    reason = reasonOf(error);
    retrying ??= setInterval(() => stream.write(""), RETRY_MS).unref();
  });
  // In the declarations of sonic-boom this event has no name.
  (stream as NodeJS.EventEmitter).on("drop", (lines: string) => {
    dropped += lines.split("\n").length - 1;
  });
  const isRetrying = () => retrying !== undefined;
  stream.on("drain", () => {
    if (isRetrying()) {
      clearInterval(retrying);
      retrying = undefined;
      // The event can stem from a write before the one that failed: lines that still wait bring the error again.
      stream.write("");
      if (typeof dest === "string") bytes = sizeOf(dest) ?? 0;
    }
    if (dropped === 0 || isRetrying()) return;
    const message = `${dropped} ${dropped === 1 ? "line was" : "lines were"} not written: ${reason}`;
    dropped = 0;
    reason = TOO_LONG;
    stream.write(`${report(message)}\n`);
  });
  const rotateWhenLarge = (file: string, { maxBytes, earlier }: Rotation) => {
    if (bytes < maxBytes) return;
    const size = sizeOf(file);
    bytes = size ?? 0;
    // A file that somebody has renamed or deleted is made again.
    if (size !== undefined && size < maxBytes) return;
    try {
      bytes = 0;
      shiftFiles(file, earlier);
      stream.reopen();
    } catch {
      // The open file takes the lines until the next attempt.
    }
  };
  return {
    write: (lines) => {
      if (!isOpen) return;
      if (rotation !== undefined && typeof dest === "string") rotateWhenLarge(dest, rotation);
      bytes += Buffer.byteLength(lines);
      stream.write(lines);
    },
    end: () => {
      if (!isOpen) return;
      isOpen = false;
      clearInterval(retrying);
      stream.destroy();
    },
  };
}

/** Keeps this process running when stdout or stderr cannot be written: the disk is full, or the reader has left. */
export function keepOutput(): void {
  for (const [fd, stream] of [
    [1, process.stdout],
    [2, process.stderr],
  ] as const) {
    // A closed terminal or pipe: the reader is gone, the installation goes on.
    stream.on("error", () => undefined);
    if (!isFile(fd)) continue;
    // Once a write to a file has failed, Node's own stream never writes again.
    const output = outputTo(fd);
    stream.write = (chunk: Uint8Array | string, ...rest: unknown[]): boolean => {
      output.write(typeof chunk === "string" ? chunk : Buffer.from(chunk).toString());
      const done = rest.at(-1);
      if (typeof done === "function") process.nextTick(done);
      return true;
    };
  }
}

/** Bytes of a file; undefined without the file. */
function sizeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.size;
}

/** Renames `file` to `file.1`, `file.1` to `file.2`, up to the number `earlier`, whose file is replaced. */
function shiftFiles(file: string, earlier: number): void {
  for (let number = earlier; number > 0; number--) {
    const from = number === 1 ? file : `${file}.${number - 1}`;
    if (sizeOf(from) !== undefined) renameSync(from, `${file}.${number}`);
  }
}

function isFile(fd: number): boolean {
  try {
    const found = fstatSync(fd);
    return found.isFile() || (found.isCharacterDevice() && !isatty(fd));
  } catch {
    return false;
  }
}

function reasonOf(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case "ENOSPC":
      return "no space left on the disk";
    case "EDQUOT":
      return "the disk quota is used up";
    default:
      return error.message;
  }
}
