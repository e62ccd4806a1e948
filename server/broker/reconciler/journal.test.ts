import { afterAll, beforeAll, expect, it } from "vitest";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { logger } from "#server/log.ts";
import { Journal } from "./journal.ts";

let test: TestDatabase;
beforeAll(async () => {
  test = await useTestDatabase();
});
afterAll(() => test.drop());

it("keeps so many lines of a step, every step's outcome, and writes them in pieces", async () => {
  const written: string[][] = [];
  const journal = new Journal<"imports" | "gpu">(test.db, logger("test"), async (_, events) => {
    written.push(events.map(({ message }) => message));
  });
  for (let line = 0; line < 70_000; line++) journal.log("imports", `line ${line}`);
  journal.log("gpu", "another step's");
  journal.failed("imports", "It failed.");
  await journal.flush();
  expect(Math.max(...written.map((piece) => piece.length))).toBe(500);
  expect(written.flat()).toHaveLength(2003);
  expect(written.flat().slice(1999)).toEqual([
    "line 1999",
    "More lines of this step are left out",
    "another step's",
    "It failed.",
  ]);
});
