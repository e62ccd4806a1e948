import { describe, expect, it } from "vitest";
import { readAmount } from "./amount-input.ts";

describe("the default amount that a person types", () => {
  it.each([
    ["0.5", 500],
    [" 1 ", 1000],
    ["2", 2000],
    [".25", 250],
    ["0.125", 125],
  ])("reads %j as %d thousandths", (text, milli) => {
    expect(readAmount(text)).toEqual({ milli });
  });

  it.each([
    ["", /is needed/],
    ["0", /more than 0/],
    ["0.0001", /more than 0/],
    ["-1", /a number such as/],
    ["NaN", /a number such as/],
    ["half", /a number such as/],
    ["0,5", /0\.5/],
    ["1.5", /use 1 or 2/],
    ["40G", /%gpu attach/],
  ])("answers %j with what to type", (text, sentence) => {
    const read = readAmount(text);
    expect("sentence" in read ? read.sentence : "").toMatch(sentence);
  });
});
