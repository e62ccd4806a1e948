import { expect, it } from "vitest";
import { remembered } from "./remembered.ts";

it("makes each once, and keeps no more than it may", () => {
  const made: string[] = [];
  const lengthOf = remembered(2, (key) => {
    made.push(key);
    return { length: key.length };
  });
  for (const key of ["a", "bb", "a", "bb"]) expect(lengthOf(key)).toEqual({ length: key.length });
  expect(made).toEqual(["a", "bb"]);
  lengthOf("ccc");
  lengthOf("bb");
  expect(made).toEqual(["a", "bb", "ccc"]);
  lengthOf("a");
  expect(made).toEqual(["a", "bb", "ccc", "a"]);
});
