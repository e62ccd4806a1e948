import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createFound, type Tell } from "./found-topic.ts";

beforeEach(() => {
  vi.useFakeTimers({ now: 1000 });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A topic that is found by hand, and whether it is looked for. */
function searched() {
  const search: { tell: Tell | undefined } = { tell: undefined };
  const found = createFound((tell) => {
    search.tell = tell;
    return () => {
      search.tell = undefined;
    };
  });
  const follow = (who?: string, since?: number) => {
    const told: (string | null)[] = [];
    return { told, leave: found.subscribe({ who, since, onTold: (one) => told.push(one) }) };
  };
  return { search, follow };
}

it("tells each of what is theirs, and everybody of what may be anybody's", () => {
  const { search, follow } = searched();
  const [ada, bo, nobody] = [follow("ada"), follow("bo"), follow()];
  search.tell?.("ada");
  search.tell?.(null);
  expect([ada.told, bo.told, nobody.told]).toEqual([["ada", null], [null], [null]]);
});

it("looks as long as somebody follows", () => {
  const { search, follow } = searched();
  expect(search.tell).toBeUndefined();
  const [one, other] = [follow("ada"), follow("bo")];
  one.leave();
  expect(search.tell).toBeDefined();
  other.leave();
  expect(search.tell).toBeUndefined();
  follow("bo");
  expect(search.tell).toBeDefined();
});

it("tells at once what has been found since the page was read, and not what others were told", () => {
  const { search, follow } = searched();
  follow("bo");
  vi.setSystemTime(3000);
  search.tell?.("ada");
  vi.setSystemTime(4000);
  expect([follow("ada", 2000).told, follow("ada", 3500).told, follow("bo", 2000).told]).toEqual([[null], [], []]);
});

it("tells whoever has read before anybody looked that something may have changed", () => {
  const { follow } = searched();
  expect(follow("ada", 900).told).toEqual([null]);
  expect(follow("ada", 1100).told).toEqual([]);
});
