/** Tables as files (RFC 4180). */

export type Cell = string | number | null;

/**
 * A cell that a spreadsheet reads as text: what begins like a formula is led by an apostrophe. Also after a semicolon,
 * a tab or a line break, which separate cells in some spreadsheet locales. The full-width forms of the signs count as
 * well: Excel in Japanese reads `＝1+1` as a formula.
 */
function cell(value: Cell): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const text = value.replaceAll(/(^|[;\t\r\n])(?=[=+\-@＝＋－＠])|^(?=[\t\r])/g, "$1'");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A byte-order mark: without it Excel reads UTF-8 as the code page of the machine. */
const BOM = "\uFEFF";

const line = (row: readonly Cell[]) => `${row.map(cell).join(",")}\r\n`;

const headersOf = (name: string) => ({
  "content-type": "text/csv; charset=utf-8",
  "content-disposition": `attachment; filename="${name.replace(/[^A-Za-z0-9._-]/g, "-")}"`,
  "cache-control": "no-store",
});

/** A file to download, with its header line. */
export function csvResponse(name: string, header: readonly string[], rows: readonly (readonly Cell[])[]): Response {
  return new Response(BOM + [header, ...rows].map(line).join(""), { headers: headersOf(name) });
}

/**
 * The same for rows that come one after the other: nothing is kept of those that are sent. The first row is read before
 * the answer begins, so that what refuses it is an answer of its own; what fails later breaks the download off.
 */
export async function csvStream(
  name: string,
  header: readonly string[],
  rows: AsyncIterable<readonly Cell[]>,
): Promise<Response> {
  const iterator = rows[Symbol.asyncIterator]();
  let next = await iterator.next();
  const encoder = new TextEncoder();
  let text = BOM + line(header);
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      for (; !next.done && text.length < CHUNK; next = await iterator.next()) text += line(next.value);
      if (text !== "") controller.enqueue(encoder.encode(text));
      text = "";
      if (next.done) controller.close();
    },
    async cancel() {
      await iterator.return?.();
    },
  });
  return new Response(body, { headers: headersOf(name) });
}

/** Characters that are sent together. */
const CHUNK = 64 * 1024;
