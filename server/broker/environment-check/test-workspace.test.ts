/** The workspace that a proposed environment is tested in: it acts for its team, and ends with its check. */
import { eq } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { principalFromCredential } from "#server/auth/principal-from-credential.ts";
import { imageVersions, workspaces } from "#server/db/schema/index.ts";
import { resetTestDatabase, type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { hashSecret, newSecret } from "#server/ids.ts";
import { checkAgain } from "#server/services/image/check-again.ts";
import { propose } from "#server/services/image/propose.ts";
import { withdraw } from "#server/services/image/withdraw.ts";
import { request } from "#server/services/lease/request.ts";
import { makeWorld, type World } from "#server/services/testing.ts";
import { type Checked, change, finish, nextCheck, sweepTests, testWorkspace } from "./state.ts";

let test: TestDatabase;
let world: World;

beforeAll(async () => {
  test = await useTestDatabase();
});
beforeEach(async () => {
  await resetTestDatabase(test);
  world = await makeWorld(test.db);
});
afterAll(async () => await test.drop());

/** A running check of a proposal for a team, by an admin without a team. */
async function underWay(name: string): Promise<{ row: Checked; workspaceId: string; credential: string }> {
  await propose(world.admin.ctx, {
    ...{ name, title: name, description: "", teamId: world.team },
    source: { kind: "packages", base: "cuda-python", requirements: "rich" },
  });
  return await begin();
}

async function begin() {
  const row = await nextCheck(test.db);
  if (row === undefined) throw new Error("nothing is to be checked");
  await change(test.db, row, { check: "running", state: "testing" });
  const workspaceId = await testWorkspace(test.db, row);
  const credential = newSecret("slw");
  await test.db
    .update(workspaces)
    .set({ observed: "running", credentialHash: hashSecret(credential) })
    .where(eq(workspaces.id, workspaceId));
  return { row, workspaceId, credential };
}

const desiredOf = async (id: string) =>
  (await test.db.select({ desired: workspaces.desired }).from(workspaces).where(eq(workspaces.id, id)))[0]?.desired;
const whoIs = async (credential: string) => await principalFromCredential(test.db, `Bearer ${credential}`);

it("borrows a GPU for the team of the proposal, whose proposer is not in that team, until the check ends", async () => {
  const { row, workspaceId, credential } = await underWay("not-mine");
  const principal = await whoIs(credential);
  expect(principal).toMatchObject({ kind: "workspace", workspaceId, teamId: world.team });
  const asked = await request(
    { ...world.system, principal },
    {
      ...{ requestId: "a1b2c3d4-0000-4000-8000-000000000001", amount: "0.25", waitSeconds: 0 },
      owner: { kind: "kernel", pid: 4711, startTime: 1, label: "check.ipynb" },
    },
  );
  expect(asked.state).not.toBe("refused");

  await finish(test.db, row, { check: "failed", checkMessage: "It could not compute." }, "image.fail");
  expect(await desiredOf(workspaceId)).toBe("removed");
  expect(await whoIs(credential)).toMatchObject({ kind: "anonymous" });
});

it("removes the test workspace of each check, and of a proposal that is withdrawn during its check", async () => {
  const first = await underWay("twice");
  await finish(test.db, first.row, { check: "failed", checkMessage: "No." }, "image.fail");
  await checkAgain(world.admin.ctx, { id: first.row.id });
  const second = await begin();
  await finish(test.db, second.row, { check: "failed", checkMessage: "No." }, "image.fail");
  await checkAgain(world.admin.ctx, { id: first.row.id });
  const third = await begin();
  await withdraw(world.admin.ctx, { id: first.row.id });
  const all = [first, second, third].map(({ workspaceId }) => workspaceId);
  expect(new Set(all).size).toBe(3);
  expect(await Promise.all(all.map(desiredOf))).toEqual(["removed", "removed", "removed"]);
});

it("continues in the same workspace after a restart, and removes a stopped one", async () => {
  const { workspaceId } = await underWay("restarted");
  const resumed = await nextCheck(test.db);
  expect(resumed?.checkWorkspaceId).toBe(workspaceId);
  expect(resumed && (await testWorkspace(test.db, resumed))).toBe(workspaceId);
  await test.db.update(workspaces).set({ desired: "stopped" }).where(eq(workspaces.id, workspaceId));
  const other = resumed && (await testWorkspace(test.db, resumed));
  expect(other).not.toBe(workspaceId);
  expect(await desiredOf(workspaceId)).toBe("removed");
});

it("removes test workspaces without a check, and keeps the one of a running check", async () => {
  const lost = await underWay("lost");
  const { id } = lost.row;
  await test.db.update(imageVersions).set({ check: "failed", checkWorkspaceId: null }).where(eq(imageVersions.id, id));
  const { workspaceId } = await underWay("kept");
  await sweepTests(test.db);
  expect(await desiredOf(lost.workspaceId)).toBe("removed");
  expect(await desiredOf(workspaceId)).toBe("running");
});
