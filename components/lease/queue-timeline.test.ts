import { expect, it } from "vitest";
import { rowOf } from "./queue-timeline.tsx";

const now = Date.UTC(2026, 10, 21, 12);
const minutes = (count: number) => count * 60_000;
const row = {
  ...{ requestId: "req-1", gpuType: "h200", milli: 500, position: 1, of: 1, teamName: "vision", userName: "Max" },
  ...{ workspaceName: "one", label: null, reason: "the team is at its limit", canLeave: true },
  waitingSince: new Date(now - minutes(12)).toISOString(),
};

it("shows the waiting time of a request, and its estimate as text and as a span", () => {
  expect(rowOf({ ...row, likelySeconds: 1080, soonestSeconds: null }, now, "Europe/Berlin")).toEqual({
    ...{ id: "req-1", name: "0.5 h200, Max", text: "waits for 12 min, likely in about 18 min" },
    spans: [
      { from: now - minutes(12), to: now, look: "past", title: "waiting since 2026-11-21 12:48" },
      { from: now, to: now + minutes(18), look: "sure", title: "likely grant 2026-11-21 13:18" },
    ],
  });
});

it("shows both limits of a busy lease as two spans", () => {
  const { spans, text } = rowOf({ ...row, likelySeconds: 14_400, soonestSeconds: 1200 }, now, "Europe/Berlin");
  expect(text).toContain("20 min (idle limit) to 4 h 00 min (time limit)");
  expect(spans.slice(1)).toEqual([
    { from: now, to: now + minutes(20), look: "sure", title: "soonest grant 2026-11-21 13:20" },
    {
      ...{ from: now + minutes(20), to: now + minutes(240), look: "maybe" },
      title: "likely grant by 2026-11-21 17:00",
    },
  ]);
});

it("says that there is no estimate", () => {
  const { spans, text } = rowOf({ ...row, likelySeconds: null, soonestSeconds: null }, now, "Europe/Berlin");
  expect([text, spans.length]).toEqual(["waits for 12 min, no estimate", 1]);
});
