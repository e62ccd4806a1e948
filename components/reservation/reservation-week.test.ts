import { expect, it } from "vitest";
import { weekOf } from "./reservation-week.tsx";

const now = Date.UTC(2026, 10, 23, 8);
const hour = 3_600_000;
const reservation = (id: string, teamName: string, from: number, to: number, userName: string | null = null) => ({
  ...{ id, teamId: `team-${teamName}`, teamName, userId: null, userName, gpuType: "h200", milli: 2000 },
  ...{ unitMilli: 1000, note: "", seriesId: null },
  startsAt: new Date(now + from * hour).toISOString(),
  endsAt: new Date(now + to * hour).toISOString(),
});

it("shows reservations on the days and at the hours of the time zone, clipped to each day and to the week", () => {
  const days = weekOf(
    [
      reservation("other", "nlp", 26, 28, "Ada"),
      reservation("running", "vision", -1, 2),
      reservation("over-midnight", "vision", 13, 17),
      reservation("last", "vision", 150, 200),
      reservation("next-week", "vision", 170, 180),
    ],
    now,
    "Europe/Berlin",
  );
  expect(days.map(({ name }) => name)).toEqual([
    "Mon 11-23",
    "Tue 11-24",
    "Wed 11-25",
    "Thu 11-26",
    "Fri 11-27",
    "Sat 11-28",
    "Sun 11-29",
  ]);
  const block = (key: string, from: number, to: number, text = "vision 2.0 h200") => ({
    ...{ key, from: from * 60, to: to * 60, text, short: "2.0", look: "more" },
  });
  expect(days.map(({ blocks }) => blocks)).toEqual([
    [block("running", 8, 11), block("over-midnight", 22, 24)],
    [block("over-midnight", 0, 2), block("other", 11, 13, "nlp 2.0 h200, Ada")],
    [],
    [],
    [],
    [],
    [block("last", 15, 24)],
  ]);
});
