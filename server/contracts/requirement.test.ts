import fc from "fast-check";
import { expect, it } from "vitest";
import { isRequirement } from "./requirement.ts";

/** The same language, as it was once written: it backtracks exponentially, so it reads short lines alone. */
const MEANING =
  /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\s*(\[[A-Za-z0-9._,\s-]*\])?\s*((===|==|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+\s*,?\s*)*(;[A-Za-z0-9_.'" <>=!()~,*+-]*)?$/;

const part = fc.constantFrom(
  ...["a", "1", ".", "-", "_", "*", "+", "!", "=", "==", "===", "!=", "~=", "<=", ">=", "<", ">"],
  ...[",", ";", " ", "\t", "[", "]", "[x]", "'", "@", "/", "==1", "!=2", ">=2,<3"],
);

it("takes the same lines as the expression that it replaces", () => {
  const line = fc
    .tuple(fc.constantFrom("a", "a[x]", "pandas ", "", "-"), fc.array(part, { maxLength: 8 }))
    .map(([name, parts]) => name + parts.join(""));
  fc.assert(
    fc.property(line, (text) => {
      expect(isRequirement(text), text).toBe(MEANING.test(text));
    }),
    { numRuns: 20_000 },
  );
});

it.each(["a==1!=2", "a==1!==2", "a==!==2", "a==1==2", "a == 1 , != 2 ,", "a[b, c]>=1;x"])("takes %s", (line) => {
  expect(MEANING.test(line)).toBe(true);
  expect(isRequirement(line)).toBe(true);
});

it("refuses a line in time linear in its length", () => {
  const started = performance.now();
  for (const gap of [12, 1000]) expect(isRequirement(`a${`==1${" ".repeat(gap)}`.repeat(1000)}@`)).toBe(false);
  expect(isRequirement(`a==${"!".repeat(100_000)}@`)).toBe(false);
  expect(performance.now() - started).toBeLessThan(1000);
});
