/** A small world for tests: two teams, their people, one environment, one GPU server with two devices. */
import { loadUser } from "#server/auth/load-user.ts";
import { encodeSession, SESSION_COOKIE } from "#server/auth/session-cookie.ts";
import { type Context, systemContext } from "#server/context.ts";
import type { Database, Transaction } from "#server/db/client.ts";
import {
  gpuServers,
  gpus,
  images,
  imageVersions,
  memberships,
  quotas,
  teams,
  users,
  workspaces,
} from "#server/db/schema/index.ts";
import { hashSecret, newId, newSecret } from "#server/ids.ts";
import { createSession } from "#server/services/session/create.ts";

type Db = Database | Transaction;

export type Person = { id: string; email: string; name: string; sessionId: string; cookie: string; ctx: Context };

export type World = {
  db: Db;
  system: Context;
  team: string;
  otherTeam: string;
  /** Admin, in no team. */
  admin: Person;
  /** Lead of `team`. */
  lead: Person;
  /** Member of `team`. */
  member: Person;
  /** Another member of `team`. */
  colleague: Person;
  /** Lead of `otherTeam`. */
  outsider: Person;
  imageVersionId: string;
  serverId: string;
  /** Two soft devices of 8 GiB. */
  gpuIds: [string, string];
};

export async function makePerson(
  db: Db,
  input: { name: string; isAdmin?: boolean; teams?: Record<string, "lead" | "member">; now?: () => Date },
): Promise<Person> {
  const system = systemContext(db, { now: input.now });
  const id = newId("usr");
  const email = `${input.name.toLowerCase()}-${id.slice(-6)}@example.org`;
  await db.insert(users).values({ id, email, name: input.name, isAdmin: input.isAdmin ?? false });
  for (const [teamId, role] of Object.entries(input.teams ?? {})) {
    await db.insert(memberships).values({ teamId, userId: id, role });
  }
  const session = await createSession(system, { userId: id, by: "password" });
  const principal = await loadUser(db, id);
  if (principal === undefined) throw new Error("The person was not made.");
  return {
    id,
    email,
    name: input.name,
    sessionId: session.sessionId,
    cookie: `${SESSION_COOKIE}=${await encodeSession({ ...session, userId: id, now: system.now() })}`,
    ctx: { ...system, principal: { ...principal, sessionId: session.sessionId } },
  };
}

export async function makeWorld(db: Db, options: { now?: () => Date } = {}): Promise<World> {
  const [team, otherTeam] = [newId("team"), newId("team")];
  await db.insert(teams).values([
    { id: team, name: "vision" },
    { id: otherTeam, name: "nlp" },
  ]);
  await db.insert(quotas).values([
    { teamId: team, gpuType: "soft", guaranteedMilli: 500, limitMilli: 1000 },
    { teamId: otherTeam, gpuType: "soft", guaranteedMilli: 500, limitMilli: 2000 },
  ]);
  const { now } = options;
  const imageId = newId("img");
  const imageVersionId = newId("imv");
  await db.insert(images).values({ id: imageId, name: "cuda-python", title: "CUDA Python", description: "For tests." });
  await db.insert(imageVersions).values({
    id: imageVersionId,
    imageId,
    version: "0123456789ab",
    state: "approved",
    spec: { folder: "server/environments/cuda-python", env: {} },
    buildState: "ready",
  });
  const serverId = newId("gsv");
  await db.insert(gpuServers).values({ id: serverId, name: "gpu-1", publicKey: newId("gsv"), state: "online" });
  const gpuIds: [string, string] = [newId("gpu"), newId("gpu")];
  await db.insert(gpus).values(
    gpuIds.map((id, index) => ({
      id,
      serverId,
      uuid: `GPU-${id}`,
      name: `soft-${index}`,
      gpuType: "soft",
      model: "Software GPU",
      computeCapability: "7.5",
      memoryBytes: 8 * 2 ** 30,
      state: "active" as const,
      profile: {},
    })),
  );
  return {
    db,
    system: systemContext(db, { now }),
    team,
    otherTeam,
    admin: await makePerson(db, { name: "Ada", isAdmin: true, now }),
    lead: await makePerson(db, { name: "Lin", teams: { [team]: "lead" }, now }),
    member: await makePerson(db, { name: "Max", teams: { [team]: "member" }, now }),
    colleague: await makePerson(db, { name: "Kim", teams: { [team]: "member" }, now }),
    outsider: await makePerson(db, { name: "Oto", teams: { [otherTeam]: "lead" }, now }),
    imageVersionId,
    serverId,
    gpuIds,
  };
}

/** A workspace of `owner` as the reconciler leaves it: running, with a credential. */
export async function makeWorkspace(
  world: World,
  input: { owner: Pick<Person, "id">; teamId?: string; name?: string; running?: boolean },
): Promise<{ id: string; credential: string }> {
  const id = newId("ws");
  const credential = newSecret("slw");
  const running = input.running ?? true;
  await world.db.insert(workspaces).values({
    id,
    name: input.name ?? id,
    ownerId: input.owner.id,
    teamId: input.teamId ?? world.team,
    imageVersionId: world.imageVersionId,
    launcher: "local",
    desired: running ? "running" : "stopped",
    observed: running ? "running" : "stopped",
    credentialHash: hashSecret(credential),
  });
  return { id, credential };
}
