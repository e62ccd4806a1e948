import { expect, it } from "vitest";
import { teamKey, teamSegments } from "./team-key.ts";

const holds = (teamName: string, milli: number) => ({ teamId: `team-${teamName}`, teamName, milli });
const all = ["h", "b", "a", "c", "e", "d", "f", "g"].map((name, at) => holds(name, 8000 - at * 500));

it("gives those that hold most a look of their own, by name, and says the rest together", () => {
  const key = teamKey(all);
  expect(key.map(({ teamName }) => teamName)).toEqual(["a", "b", "c", "d", "e", "h", "f", "g"]);
  expect(new Set(key.slice(0, 6).map(({ look }) => look)).size).toBe(6);
  const { segments, words } = teamSegments(key, [holds("g", 250), holds("b", 1000), holds("f", 500)]);
  expect(segments.map(({ key: name, value, look }) => ({ name, value, look }))).toEqual([
    { name: "b", value: 1000, look: key[1]?.look },
    { name: "others", value: 750, look: "rest" },
  ]);
  // Whoever points at them, or hears them, is told of each.
  expect(segments[1]?.title).toBe("others: f 0.5, g 0.25");
  expect(words).toBe("b 1.0, f 0.5, g 0.25");
});

it("keeps the looks while amounts change", () => {
  const two = [holds("nlp", 500), holds("vision", 1000)];
  expect(teamKey(two)).toEqual(teamKey([...two].reverse()));
  expect(teamSegments(teamKey(two), []).words).toBe("nothing leased");
});
