/** Tables as files (RFC 4180). */

type Cell = string | number | null;

/** A cell that a spreadsheet reads as text: one that begins like a formula is led by an apostrophe. */
function cell(value: Cell): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A file to download, with its header line. */
export function csvResponse(name: string, header: readonly string[], rows: readonly (readonly Cell[])[]): Response {
  const body = [header, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
  return new Response(body, {
    headers: {
      "content-type": "text/csv; charset=utf-8",
      "content-disposition": `attachment; filename="${name.replace(/[^A-Za-z0-9._-]/g, "-")}"`,
      "cache-control": "no-store",
    },
  });
}
