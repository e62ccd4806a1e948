import { expect, it } from "vitest";
import { type Cell, csvResponse, csvStream } from "./csv.ts";

const rows: Cell[][] = [
  ["plain", 1, null],
  ['with "quotes", a comma', 2.5, "=1+1"],
  ["two\r\nlines", -3, "@SUM(A1)"],
];

const many = Array.from({ length: 30_000 }, (_, at) => rows[at % rows.length] ?? []);

async function* each(): AsyncGenerator<Cell[]> {
  yield* many;
}

it("quotes what a table needs, and leaves no formula to a spreadsheet", async () => {
  expect(await csvResponse("a b.csv", ["name", "count", "note"], rows).text()).toBe(
    'name,count,note\r\nplain,1,\r\n"with ""quotes"", a comma",2.5,\'=1+1\r\n"two\r\nlines",-3,\'@SUM(A1)\r\n',
  );
});

it("leaves no formula to a spreadsheet that cuts cells at other signs than commas", async () => {
  const text = async (cell: string) =>
    (await csvResponse("a.csv", ["name"], [[cell]]).text()).slice("name\r\n".length, -2);
  expect(await text("Ada;=1+1")).toBe("Ada;'=1+1");
  expect(await text("Ada\t@SUM(A1)")).toBe("Ada\t'@SUM(A1)");
  expect(await text("Ada\r\n-1+1")).toBe('"Ada\r\n\'-1+1"');
  expect(await text("\tAda")).toBe("'\tAda");
  expect(await text("3-1; x = 2, a@b.example, [1,-5]")).toBe('"3-1; x = 2, a@b.example, [1,-5]"');
});

it("escapes formulas with full-width signs, which Excel in Japanese evaluates", async () => {
  const wide = ["＝1+1", "＋1", "－1", "＠SUM(A1)", "a;＝1+1"];
  const text = await csvResponse(
    "a.csv",
    ["name"],
    wide.map((each) => [each]),
  ).text();
  expect(text).toBe("name\r\n'＝1+1\r\n'＋1\r\n'－1\r\n'＠SUM(A1)\r\na;'＝1+1\r\n");
});

it("begins with a byte-order mark, for Excel to read it as UTF-8, whole and streamed", async () => {
  const begin = async (answer: Response) => [...new Uint8Array(await answer.arrayBuffer()).slice(0, 4)];
  const expected = [0xef, 0xbb, 0xbf, "M".charCodeAt(0)];
  expect(await begin(csvResponse("a.csv", ["Müller"], []))).toEqual(expected);
  expect(await begin(await csvStream("a.csv", ["Müller"], each()))).toEqual(expected);
});

it("streams the same, with only a part of it at a time", async () => {
  const header = ["name", "count", "note"];
  const streamed = await csvStream("all.csv", header, each());
  const whole = csvResponse("all.csv", header, many);
  expect(await streamed.text()).toBe(await whole.text());
  let read = 0;
  async function* counted() {
    for await (const row of each()) {
      read += 1;
      yield row;
    }
  }
  const left = await csvStream("all.csv", header, counted());
  await left.body?.cancel();
  expect(read).toBeLessThan(10_000);
});

it("refuses before the answer begins what cannot be read", async () => {
  async function* refused(): AsyncGenerator<Cell[]> {
    yield await Promise.reject(new Error("not yours"));
  }
  await expect(csvStream("all.csv", ["name"], refused())).rejects.toThrow("not yours");
});
