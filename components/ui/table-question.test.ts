import { expect, it } from "vitest";
import { withQuestion } from "./table-question.ts";

const initial = { id: "name" };

it("keeps what a table is asked in the address, beside what else stands there", () => {
  const query = withQuestion("?after=x&filter-leases=a", "GPU leases", {
    word: " ada b ",
    order: { id: "gpu", down: true },
    initial,
  });
  expect(query).toBe("after=x&filter-leases=a&filter-gpu-leases=ada+b&sort-gpu-leases=gpu-down");
  expect(withQuestion(`?${query}`, "GPU leases", { word: "", order: { id: "gpu" }, initial })).toBe(
    "after=x&filter-leases=a&sort-gpu-leases=gpu",
  );
});

it("leaves out what is as at first", () => {
  const asked = "?filter-people=a&sort-people=email-down";
  expect(withQuestion(asked, "People", { word: "", order: { id: "name", down: false }, initial })).toBe("");
  expect(withQuestion(asked, "People", { word: "", order: undefined, initial: undefined })).toBe("");
});
