import { expect, it } from "vitest";
import { weekOf } from "./reservation-week.tsx";

const now = Date.UTC(2026, 10, 23, 8);
const hour = 3_600_000;
const reservation = (id: string, teamName: string, from: number, to: number) => ({
  ...{ id, teamId: `team-${teamName}`, teamName, userId: null, userName: null, gpuType: "h200", milli: 2000 },
  ...{ unitMilli: 1000, note: "", seriesId: null },
  startsAt: new Date(now + from * hour).toISOString(),
  endsAt: new Date(now + to * hour).toISOString(),
});

it("shows a team's reservations of the next seven days on one line, clipped to the week", () => {
  const rows = weekOf(
    [
      reservation("running", "vision", -1, 2),
      reservation("last", "vision", 160, 200),
      reservation("next-week", "vision", 170, 180),
      reservation("other", "nlp", 26, 28),
    ],
    now,
    "Europe/Berlin",
  );
  expect(rows).toEqual([
    {
      ...{ id: "team-vision h200", name: "vision, h200" },
      text: "2.0 from 2026-11-23 08:00; 2.0 from 2026-11-30 01:00",
      spans: [
        { from: now, to: now + 2 * hour, look: "sure" },
        { from: now + 160 * hour, to: now + 168 * hour, look: "sure" },
      ],
    },
    {
      ...{ id: "team-nlp h200", name: "nlp, h200", text: "2.0 from 2026-11-24 11:00" },
      spans: [{ from: now + 26 * hour, to: now + 28 * hour, look: "sure" }],
    },
  ]);
});
