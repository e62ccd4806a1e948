import { eq, inArray } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { proposalSource } from "#server/contracts/image.ts";
import { auditEvents, imageVersions, workspaces } from "#server/db/schema/index.ts";
import { type TestDatabase, useTestDatabase } from "#server/db/testing.ts";
import { makeWorkspace, makeWorld, type Person, type World } from "#server/services/testing.ts";
import { create } from "#server/services/workspace/create.ts";
import { duplicate } from "#server/services/workspace/duplicate.ts";
import { get } from "#server/services/workspace/get.ts";
import { lastLaunch } from "#server/services/workspace/last-launch.ts";
import { update } from "#server/services/workspace/update.ts";
import { approve } from "./approve.ts";
import { checkAgain } from "./check-again.ts";
import { getVersion } from "./get-version.ts";
import { list } from "./list.ts";
import { listVersions } from "./list-versions.ts";
import { propose } from "./propose.ts";
import { setState } from "./set-state.ts";
import { withdraw } from "./withdraw.ts";

let test: TestDatabase;
let world: World;

beforeAll(async () => {
  test = await useTestDatabase();
  world = await makeWorld(test.db);
});
afterAll(() => test.drop());

const packages = { kind: "packages", base: "cuda-python", requirements: "humanize>=4" } as const;
const words = () => ({ name: "words", title: "Words", description: "", teamId: world.team, source: packages });

/** A proposal whose check has ended so. */
async function checked(by: Person, check: "passed" | "failed"): Promise<string> {
  const { id } = await propose(by.ctx, words());
  await test.db
    .update(imageVersions)
    .set({ check, version: id.slice(-12) })
    .where(eq(imageVersions.id, id));
  return id;
}
const offers = async (person: Person) => (await list(person.ctx)).images.map(({ name }) => name);
const everybody = { teamIds: null };

it("takes packages by name and version alone: no address, path or option reaches the installer", () => {
  const taken = (requirements: string) => proposalSource.safeParse({ ...packages, requirements }).success;
  const good = "humanize\npandas[excel] >= 2.2, <3  # tables\nnumpy~=2.1; python_version >= '3.11'\n\n# nothing\n";
  expect(taken(good)).toBe(true);
  for (const bad of [
    ...["-r other.txt", "--index-url=http://elsewhere", "-e .", "./wheel.whl", "../x", "/etc/passwd"],
    ...["humanize\r--no-binary evil", 'humanize ; python_version>"3"\r-r x', "humanize ; x --pre", "humänize"],
    ...["pkg @ https://elsewhere/pkg.whl", "git+https://elsewhere/x.git", "humanize --pre", "a\\\n-r b", "a;b @ c"],
  ]) {
    expect(taken(bad), bad).toBe(false);
  }
  const image = (reference: string) => proposalSource.safeParse({ kind: "image", reference }).success;
  expect(image(`team/words@sha256:${"0".repeat(64)}`)).toBe(true);
  expect(image("team/words:latest")).toBe(false);
});

it("is a team's and admins' to see, and nobody is offered it before it has passed and is approved", async () => {
  const { id } = await propose(world.lead.ctx, words());
  await expect(propose(world.member.ctx, words())).rejects.toMatchObject({ code: "forbidden" });
  await expect(getVersion(world.outsider.ctx, { id })).rejects.toMatchObject({ code: "not-found" });
  expect((await listVersions(world.outsider.ctx)).versions.map((each) => each.id)).not.toContain(id);
  expect((await getVersion(world.member.ctx, { id })).proposed).toMatchObject({ check: "waiting", by: "Lin" });
  await expect(approve(world.lead.ctx, { id, ...everybody })).rejects.toMatchObject({ code: "forbidden" });
  await expect(approve(world.admin.ctx, { id, ...everybody })).rejects.toMatchObject({ code: "conflict" });
  await expect(setState(world.admin.ctx, { id, state: "approved" })).rejects.toMatchObject({ code: "conflict" });
  await expect(create(world.member.ctx, { name: "early", image: "words" })).rejects.toMatchObject({
    code: "not-found",
  });
  await withdraw(world.lead.ctx, { id });
  expect((await listVersions(world.lead.ctx)).versions.map((each) => each.id)).not.toContain(id);
});

it("belongs to the team that began it, and is none of this installation's", async () => {
  const { id } = await propose(world.lead.ctx, words());
  const theirs = { ...words(), teamId: world.otherTeam };
  await expect(propose(world.outsider.ctx, theirs)).rejects.toMatchObject({ code: "conflict" });
  await withdraw(world.lead.ctx, { id });
  const ours = { ...words(), name: "cuda-python" };
  await expect(propose(world.admin.ctx, ours)).rejects.toMatchObject({ code: "conflict" });
  const image = { kind: "image", reference: `words@sha256:${"0".repeat(64)}` } as const;
  await expect(propose(world.lead.ctx, { ...words(), source: image })).rejects.toMatchObject({ code: "refused" });
  const based = { ...words(), source: { ...packages, base: "cupy" } };
  await expect(propose(world.lead.ctx, based)).rejects.toMatchObject({ code: "invalid" });
});

it("leaves a name to whoever has a version of it: a withdrawn one is anybody's, a mixed one nobody's", async () => {
  const named = (teamId: string, title = "Free") => ({ ...words(), name: "free", teamId, title });
  const conflict = { code: "conflict" };
  const { id } = await propose(world.lead.ctx, named(world.team));
  await expect(propose(world.outsider.ctx, named(world.otherTeam))).rejects.toMatchObject(conflict);
  await expect(propose(world.outsider.ctx, named(world.team))).rejects.toMatchObject({ code: "forbidden" });
  await expect(propose(world.admin.ctx, named(world.otherTeam))).rejects.toMatchObject(conflict);
  await withdraw(world.lead.ctx, { id });
  const theirs = await propose(world.outsider.ctx, named(world.otherTeam, "Taken over"));
  expect(theirs.image.title).toBe("Taken over");
  await expect(propose(world.lead.ctx, named(world.team))).rejects.toMatchObject(conflict);
  await withdraw(world.outsider.ctx, { id: theirs.id });
});

it("lets no team fill the queue of checks or the disk", async () => {
  const ids: string[] = [];
  const one = async () => {
    ids.push((await propose(world.lead.ctx, { ...words(), name: `many-${ids.length}` })).id);
  };
  for (let n = 0; n < 3; n++) await one();
  await expect(one()).rejects.toThrow(/3 proposals of this team are being checked/);
  const end = async () => {
    await test.db.update(imageVersions).set({ check: "failed" }).where(inArray(imageVersions.id, ids));
  };
  for (await end(); ids.length < 10; await end()) await one();
  await expect(one()).rejects.toThrow(/10 proposals of this team await a decision/);
  for (const id of ids.slice(0, 3)) await checkAgain(world.lead.ctx, { id });
  await expect(checkAgain(world.lead.ctx, { id: ids[3] ?? "" })).rejects.toThrow(/being checked/);
  for (const id of ids) await withdraw(world.lead.ctx, { id });
  await expect(one()).resolves.toBeUndefined();
  await withdraw(world.lead.ctx, { id: ids.at(-1) ?? "" });
});

it("rolls out to teams; a workspace of an older version is offered the newer one, and has it from its next start", async () => {
  const first = await checked(world.lead, "passed");
  await approve(world.admin.ctx, { id: first, teamIds: [world.team] });
  expect(await offers(world.member)).toContain("words");
  expect(await offers(world.outsider)).not.toContain("words");
  const foreign = { name: "theirs", image: "words", teamId: world.otherTeam };
  await expect(create(world.outsider.ctx, foreign)).rejects.toMatchObject({ code: "not-found" });
  const { id, update: none } = await create(world.member.ctx, { name: "mine", image: "words" });
  expect(none).toBeNull();
  expect(await lastLaunch(world.member.ctx)).toMatchObject({ name: "mine", image: "words", teamId: world.team });
  expect(await lastLaunch(world.outsider.ctx)).toBeUndefined();

  const second = await checked(world.lead, "failed");
  // As its check would test it.
  const tested = await makeWorkspace(world, { owner: world.lead });
  await test.db.update(workspaces).set({ imageVersionId: second }).where(eq(workspaces.id, tested.id));
  expect(await lastLaunch(world.lead.ctx)).toBeUndefined();
  expect((await get(world.member.ctx, { id })).update).toBeNull();
  await checkAgain(world.lead.ctx, { id: second });
  await test.db.update(imageVersions).set({ check: "passed" }).where(eq(imageVersions.id, second));
  await approve(world.admin.ctx, { id: second, teamIds: [world.otherTeam] });
  expect((await get(world.member.ctx, { id })).update).toBeNull();
  await approve(world.admin.ctx, { id: second, ...everybody });
  expect(await offers(world.outsider)).toContain("words");
  expect((await get(world.member.ctx, { id })).update).toMatchObject({ id: second });

  await expect(update(world.member.ctx, { id, versionId: first })).rejects.toMatchObject({ code: "conflict" });
  await expect(update(world.lead.ctx, { id, versionId: second })).rejects.toMatchObject({ code: "forbidden" });
  const updated = await update(world.member.ctx, { id, versionId: second });
  expect(updated).toMatchObject({ update: null, generation: 2, observed: "pending" });
  const [row] = await test.db.select().from(workspaces).where(eq(workspaces.id, id));
  expect(row?.imageVersionId).toBe(second);
  const told = await test.db.select().from(auditEvents).where(eq(auditEvents.subject, second)).orderBy(auditEvents.seq);
  expect(told.map(({ action }) => action)).toEqual([
    "image.propose",
    "image.check-again",
    "image.approve",
    "image.approve",
  ]);

  const copy = (name: string) => duplicate(world.member.ctx, { id, name });
  const refused = { code: "refused", message: expect.stringContaining("not offered to your team") as string };
  await expect(copy("while it is offered")).resolves.toMatchObject({ image: { version: updated.image.version } });
  await approve(world.admin.ctx, { id: second, teamIds: [world.otherTeam] });
  await expect(copy("of others")).rejects.toMatchObject(refused);
  await approve(world.admin.ctx, { id: second, ...everybody });
  await setState(world.admin.ctx, { id: second, state: "retired" });
  expect(await offers(world.member)).not.toContain("words");
  await expect(copy("of what is retired")).rejects.toMatchObject(refused);
});

it("retired and approved again, it is offered to whom it was before, and what was retired earlier stays so", async () => {
  const words = async ({ ctx }: Person) => (await list(ctx)).images.find(({ name }) => name === "words")?.version.id;
  const earlier = (await listVersions(world.admin.ctx)).versions.filter(({ image }) => image.name === "words");
  expect(earlier.some(({ newest, state }) => newest && state === "retired")).toBe(true);
  const first = await checked(world.lead, "passed");
  await approve(world.admin.ctx, { id: first, ...everybody });
  const second = await checked(world.lead, "passed");
  await approve(world.admin.ctx, { id: second, teamIds: [world.team] });
  const offered = async () => [await words(world.member), await words(world.outsider)];
  expect(await offered()).toEqual([second, first]);
  await setState(world.admin.ctx, { id: second, state: "retired" });
  expect(await offered()).toEqual([undefined, undefined]);
  await setState(world.admin.ctx, { id: second, state: "approved" });
  expect(await offered()).toEqual([second, first]);
  const after = (await listVersions(world.admin.ctx)).versions;
  for (const { id } of earlier) expect(after.find((each) => each.id === id)?.state).toBe("retired");
  await setState(world.admin.ctx, { id: second, state: "retired" });
});

it("is launched in any version that the team gets, the newest unless one is named, and again in the same", async () => {
  const [first, second, third] = [
    await checked(world.lead, "passed"),
    await checked(world.lead, "passed"),
    await checked(world.lead, "passed"),
  ];
  await approve(world.admin.ctx, { id: first, ...everybody });
  await approve(world.admin.ctx, { id: second, ...everybody });
  await approve(world.admin.ctx, { id: third, teamIds: [world.otherTeam] });
  const words = async ({ ctx }: Person) => (await list(ctx)).images.find(({ name }) => name === "words");
  expect((await words(world.member))?.versions.slice(0, 2).map(({ id }) => id)).toEqual([second, first]);
  expect((await words(world.outsider))?.versions.slice(0, 3).map(({ id }) => id)).toEqual([third, second, first]);

  const launch = async (name: string, versionId?: string) => {
    const { id } = await create(world.member.ctx, { name, image: "words", versionId });
    const [row] = await test.db.select().from(workspaces).where(eq(workspaces.id, id));
    return { id, versionId: row?.imageVersionId };
  };
  const older = await launch("older", first);
  expect(older.versionId).toBe(first);
  // It keeps it, is offered the newest, and so is what is made like it.
  expect(await get(world.member.ctx, { id: older.id })).toMatchObject({ update: { id: second } });
  expect(await lastLaunch(world.member.ctx)).toMatchObject({ image: "words", versionId: first });
  const again = await duplicate(world.member.ctx, { id: older.id, name: "older again" });
  const [copy] = await test.db.select().from(workspaces).where(eq(workspaces.id, again.id));
  expect(copy?.imageVersionId).toBe(first);

  const newest = await launch("newest");
  expect(newest.versionId).toBe(second);
  expect(await lastLaunch(world.member.ctx)).toMatchObject({ image: "words", versionId: undefined });
  // What came after it does not make it an older one that somebody chose.
  const fourth = await checked(world.lead, "passed");
  await approve(world.admin.ctx, { id: fourth, ...everybody });
  expect(await lastLaunch(world.member.ctx)).toMatchObject({ versionId: undefined });

  for (const notTheirs of [third, await checked(world.lead, "passed"), world.imageVersionId]) {
    await expect(launch("not theirs", notTheirs)).rejects.toMatchObject({
      code: "refused",
      message: expect.stringMatching(/^versionId: Your team is not offered this version of/) as string,
    });
  }
  await setState(world.admin.ctx, { id: fourth, state: "retired" });
  await expect(launch("retired", first)).rejects.toMatchObject({ code: "not-found" });
});
