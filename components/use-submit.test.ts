import { expect, it } from "vitest";
import { errorOf } from "./use-submit.ts";

const refused = (fields: Record<string, string>) => ({ code: "conflict", message: "As a whole.", fields });

it("a form says itself what names no field, or one that it does not have", () => {
  expect(errorOf(refused({}), ["name"])).toBe("As a whole.");
  expect(errorOf(refused({ name: "It is taken." }), ["name"])).toBeUndefined();
  expect(errorOf(refused({ name: "It is taken." }), ["title"])).toBe("It is taken.");
  expect(errorOf(refused({ "": "Too much of it." }), ["title"])).toBe("Too much of it.");
});

it("what one of its fields says hides nothing of others", () => {
  const two = refused({ name: "It is taken.", datasets: "One of them is not there." });
  expect(errorOf(two, ["name"])).toBe("One of them is not there.");
});
