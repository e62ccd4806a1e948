import { expect, it } from "vitest";
import { DAY, groupsOf, overlapping, readClock, segmentsOf, windowsOn } from "./week.ts";

const same = () => "";
const when = (days: number[], from: number, to: number) => groupsOf(windowsOn(days, from, to), same).map((g) => g.when);

it("days with the same hours are one line", () => {
  expect(when([0, 1, 2, 3, 4], 8 * 60, 20 * 60)).toEqual(["Mon to Fri 08:00 to 20:00"]);
  expect(when([0, 2, 3, 6], 8 * 60, 20 * 60 + 30)).toEqual(["Mon, Wed, Thu, Sun 08:00 to 20:30"]);
  expect(when([0, 1, 2, 3, 4, 5, 6], 0, 0)).toEqual(["Every day 00:00 to 24:00"]);
});

it("an end before the beginning lies on the next day, on Sunday in the next week", () => {
  expect(windowsOn([6], 22 * 60, 6 * 60)).toEqual([{ fromMinute: 6 * DAY + 22 * 60, toMinute: 6 * 60 }]);
  expect(when([6], 22 * 60, 6 * 60)).toEqual(["Sun 22:00 to 06:00 (next day)"]);
});

it("what means something else is a line of its own", () => {
  const windows = windowsOn([0, 1], 0, 60).map((window, index) => ({ ...window, kind: String(index) }));
  expect(groupsOf(windows, ({ kind }) => kind).map((group) => group.when)).toEqual([
    "Mon 00:00 to 01:00",
    "Tue 00:00 to 01:00",
  ]);
});

it("shows a duplicate entry as two overlapping lines", () => {
  const twice = [...windowsOn([0, 1], 0, 60), ...windowsOn([0, 1], 0, 60)];
  expect(groupsOf(twice, same).map(({ when, windows }) => [when, windows.length])).toEqual([
    ["Mon, Tue 00:00 to 01:00", 2],
    ["Mon, Tue 00:00 to 01:00", 2],
  ]);
  expect(overlapping(twice).size).toBe(4);
});

it("finds entries that overlap, also across the week's end; adjacent entries do not overlap", () => {
  const [late, early] = [windowsOn([6], 22 * 60, 6 * 60), windowsOn([0], 5 * 60, 8 * 60)];
  expect(overlapping([...late, ...early])).toEqual(new Set([...late, ...early]));
  expect(overlapping([...windowsOn([2], 0, 60), ...windowsOn([2], 60, 120)]).size).toBe(0);
});

it("a stretch of days is told with both ends, and one that ends where it begins is the whole week", () => {
  expect(groupsOf([{ fromMinute: 60, toMinute: 4 * DAY }], same)[0]?.when).toBe("Mon 01:00 to Fri 00:00");
  expect(groupsOf([{ fromMinute: 60, toMinute: 60 }], same)[0]?.when).toBe("all week");
});

it("each day has its part of a window, over midnight and over the week's end", () => {
  const days = segmentsOf(windowsOn([0, 6], 22 * 60, 6 * 60)).map((day) => day.map(({ from, to }) => [from, to]));
  expect(days).toEqual([
    [
      [22 * 60, DAY],
      [0, 6 * 60],
    ],
    [[0, 6 * 60]],
    ...[[], [], [], []],
    [[22 * 60, DAY]],
  ]);
  const all = segmentsOf([{ fromMinute: 60, toMinute: 60 }]).flat();
  expect(all.reduce((sum, { from, to }) => sum + to - from, 0)).toBe(7 * DAY);
});

it.each([
  ["08:30", 510],
  ["00:00", 0],
  ["24:00", undefined],
  ["8:30", undefined],
  ["", undefined],
])("%j is %j minutes", (text, minute) => {
  expect(readClock(text)).toBe(minute);
});
