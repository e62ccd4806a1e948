import { expect, test } from "vitest";
import { whoIsStopped } from "./who-is-stopped.ts";

const ada = { id: "usr-ada", isAdmin: false, teams: [{ id: "team-v", name: "vision", role: "member" as const }] };
const admin = { id: "usr-root", isAdmin: true, teams: [] };

test("everybody hears of a stop for all, and of those that bind them; an admin hears of all", () => {
  const stop = (scope: "all" | "team" | "user", subjectId: string | null) => ({ scope, subjectId });
  expect(whoIsStopped(stop("all", null), ada)).toBe("anybody");
  expect(whoIsStopped(stop("team", "team-v"), ada)).toBe("team vision");
  expect(whoIsStopped(stop("user", "usr-ada"), ada)).toBe("you");
  expect(whoIsStopped(stop("team", "team-n"), ada)).toBeUndefined();
  expect(whoIsStopped(stop("user", "usr-lin"), ada)).toBeUndefined();
  expect(whoIsStopped(stop("team", "team-v"), admin)).toBe("one team");
  expect(whoIsStopped(stop("user", "usr-ada"), admin)).toBe("one person");
});
