/** Output of a long-running process that outlives a full disk. */
import { fstatSync } from "node:fs";
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

/**
 * Opens a file descriptor, or a file to append to. A line that cannot be written does not end the process: up to 1 MiB
 * of lines wait, further lines are dropped, and `report` makes the line that counts the dropped ones once all waiting
 * lines are written. Throws when the file cannot be opened.
 */
export function outputTo(dest: number | string, report: (message: string) => string = (message) => message): Output {
  const stream = pino.destination({ dest, sync: true, append: true, maxLength: WAITING_BYTES });
  let dropped = 0;
  let reason = TOO_LONG;
  let retrying: NodeJS.Timeout | undefined;
  let isOpen = true;
  stream.on("error", (error: NodeJS.ErrnoException) => {
    reason = reasonOf(error);
    retrying ??= setInterval(() => stream.write(""), RETRY_MS).unref();
  });
  // In the declarations of sonic-boom this event has no name.
  (stream as NodeJS.EventEmitter).on("drop", (lines: string) => {
    dropped += lines.split("\n").length - 1;
  });
  // All waiting lines are written.
  stream.on("drain", () => {
    clearInterval(retrying);
    retrying = undefined;
    if (dropped === 0) return;
    const message = `${dropped} ${dropped === 1 ? "line was" : "lines were"} not written: ${reason}`;
    dropped = 0;
    reason = TOO_LONG;
    stream.write(`${report(message)}\n`);
  });
  return {
    write: (lines) => {
      if (isOpen) stream.write(lines);
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
