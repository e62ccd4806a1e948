/** Lines of the output of other programs, which may be endless and may have no line ends. */
import { StringDecoder } from "node:string_decoder";

/** Longest line, characters. A longer line comes in pieces, so that one line cannot fill this process's memory. */
const LONGEST_LINE = 16 * 1024;

/** Splits text that comes in parts. \n, \r\n and \r end a line. */
export class LineSplitter {
  readonly #decoder = new StringDecoder("utf8");
  #rest = "";
  /** The last part ended with \r: a \n at the start of the next one belongs to it. */
  #hasReturned = false;

  /** The lines that end in this part, and the pieces of a line that is too long. */
  push(part: Buffer | string): string[] {
    let text = typeof part === "string" ? part : this.#decoder.write(part);
    if (text === "") return [];
    if (this.#hasReturned && text.startsWith("\n")) text = text.slice(1);
    this.#hasReturned = text.endsWith("\r");
    const lines = `${this.#rest}${text}`.split(/\r\n|[\r\n]/);
    const rest = pieces(lines.pop() ?? "");
    this.#rest = rest.pop() ?? "";
    return [...lines.flatMap(pieces), ...rest];
  }

  /** The last line, when it has no end. */
  end(): string[] {
    const rest = `${this.#rest}${this.#decoder.end()}`;
    this.#rest = "";
    return rest === "" ? [] : [rest];
  }
}

/** Calls `onLine` for each line of a stream. */
export function onLines(stream: NodeJS.ReadableStream, onLine: (line: string) => void): void {
  const splitter = new LineSplitter();
  stream.on("data", (part: Buffer | string) => {
    for (const line of splitter.push(part)) onLine(line);
  });
  stream.once("end", () => {
    for (const line of splitter.end()) onLine(line);
  });
}

function pieces(line: string): string[] {
  const count = Math.max(1, Math.ceil(line.length / LONGEST_LINE));
  return Array.from({ length: count }, (_, at) => line.slice(at * LONGEST_LINE, (at + 1) * LONGEST_LINE));
}
