/** The files behind the charts of a workspace and of a team's budget. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { workspaceSamples } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { setQuota } from "#server/services/team/set-quota.ts";
import { makeWorkspace, makeWorld, type World } from "#server/services/testing.ts";
import { GET as getWaste } from "./v1/costs/waste/route.ts";
import { GET as getBudget } from "./v1/teams/[id]/budget/route.ts";
import { GET as getUsage } from "./v1/utilisation/route.ts";
import { GET as getSamples } from "./v1/workspaces/[id]/samples/route.ts";

let test: TestDatabase;
let world: World;
beforeAll(async () => {
  test = await useTestDatabase();
  world = await makeWorld(test.db);
});
afterAll(() => test.drop());

/** The lines of a file, as a member asks for it. */
async function linesOf(handler: typeof getSamples, path: string, id: string): Promise<string[]> {
  const request = new Request(`http://localhost:3000/api/v1/${path}`, { headers: { cookie: world.member.cookie } });
  const answer = await handler(request, { params: Promise.resolve({ id }) });
  expect(answer.headers.get("content-type")).toBe("text/csv; charset=utf-8");
  return (await answer.text()).trimEnd().split("\r\n");
}

it("the use of a workspace has a line for each stretch, and nothing where nothing was measured", async () => {
  const { id } = await makeWorkspace(world, { owner: world.member });
  const at = new Date(Date.now() - 120_000);
  await test.db.insert(workspaceSamples).values({ workspaceId: id, at, cpuMilli: 1500, memoryBytes: 2 ** 30 });
  const [header, ...lines] = await linesOf(getSamples, `workspaces/${id}/samples?format=csv&minutes=60`, id);
  expect(header).toBe('from,CPU cores,memory bytes,GPUs held,"GPU time, GPUs",GPU memory bytes');
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z,1\.5,1073741824,,,$/);
});

it("a team's budget has a line for each type and day of the month", async () => {
  const quota = { teamId: world.team, gpuType: "soft", guaranteedMilli: 500, limitMilli: 1000 };
  await setQuota(world.admin.ctx, { ...quota, budgetMilliHours: 12_500 });
  const lines = await linesOf(getBudget, `teams/${world.team}/budget?format=csv`, world.team);
  expect(lines[0]).toBe('GPU type,day,used GPU-hours,"budget of the month, GPU-hours"');
  expect(lines).toHaveLength(1 + new Date().getUTCDate());
  expect(lines.at(-1)).toBe(`soft,${new Date().toISOString().slice(0, 10)},0,12.5`);
});

it.each([
  ["utilisation?by=team", getUsage, "usage-team-"],
  ["utilisation?by=person", getUsage, "usage-person-"],
  ["utilisation?by=type", getUsage, "usage-type-"],
  ["utilisation?by=workspace", getUsage, "usage-workspace-"],
  ["costs/waste?by=team", getWaste, "gpu-audit-team-"],
  ["costs/waste?by=person", getWaste, "gpu-audit-person-"],
  ["costs/waste?by=workspace", getWaste, "gpu-audit-workspace-"],
])("%s is a file named after its page, with each column once", async (path, handler, begin) => {
  const request = new Request(`http://localhost:3000/api/v1/${path}&format=csv`, {
    headers: { cookie: world.admin.cookie },
  });
  const answer = await handler(request, { params: Promise.resolve({}) });
  expect(answer.headers.get("content-disposition")).toContain(`filename="${begin}`);
  const columns = (await answer.text()).split("\r\n")[0]?.split(",") ?? [];
  expect(columns).toEqual([...new Set(columns)]);
  expect(columns.includes("team")).toBe(!path.includes("by=type"));
});
