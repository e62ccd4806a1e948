/** Rows that tests and the benchmark of leases stand on. */
import { createHash } from "node:crypto";
import type { Database } from "#server/db/client.ts";
import { images, imageVersions, memberships, quotas, teams, users, workspaces } from "#server/db/schema/index.ts";
import { hashSecret, newId, newSecret } from "#server/ids.ts";

export type TestWorkspace = { workspaceId: string; teamId: string; userId: string; credential: string };

/** A team with a quota for one GPU type. */
export async function makeTeam(
  db: Database,
  name: string,
  quota: { gpuType?: string; guaranteedMilli: number; limitMilli: number },
): Promise<string> {
  const id = newId("team");
  await db.insert(teams).values({ id, name });
  await db.insert(quotas).values({ teamId: id, gpuType: "soft", ...quota });
  return id;
}

/** A member of this team with a running workspace in it, and its credential. */
export async function makeWorkspace(db: Database, teamId: string, name: string): Promise<TestWorkspace> {
  const userId = newId("usr");
  await db.insert(users).values({ id: userId, email: `${userId}@example.com`, name });
  await db.insert(memberships).values({ teamId, userId, role: "member" });
  const imageVersionId = await anImage(db);
  const workspaceId = newId("ws");
  const credential = newSecret("slw");
  await db.insert(workspaces).values({
    id: workspaceId,
    name,
    ownerId: userId,
    teamId,
    imageVersionId,
    launcher: "local",
    desired: "running",
    observed: "running",
    credentialHash: hashSecret(credential),
  });
  return { workspaceId, teamId, userId, credential };
}

async function anImage(db: Database): Promise<string> {
  const [known] = await db.select({ id: imageVersions.id }).from(imageVersions).limit(1);
  if (known !== undefined) return known.id;
  const imageId = newId("img");
  await db.insert(images).values({ id: imageId, name: "plain", title: "Plain", description: "Nothing in it" });
  const id = newId("imv");
  const version = createHash("sha256").update("plain").digest("hex");
  await db.insert(imageVersions).values({ id, imageId, version, state: "approved", spec: {}, buildState: "ready" });
  return id;
}
