import { and, eq, isNull, ne } from "drizzle-orm";
import { audit, authorize, type Context, inTransaction } from "#server/context.ts";
import { type JoinPodAnswer, type JoinPodInput, joinPodInput } from "#server/contracts/pod.ts";
import { memberships, teams, users, workspaces } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";
import { hashSecret, newId, newSecret } from "#server/ids.ts";
import type { ClusterAccount } from "#server/launchers/kubernetes/cluster-account.ts";
import { placeOf } from "#server/launchers/kubernetes/pods/wish.ts";
import { notify } from "#server/live.ts";
import { parse } from "#server/parse.ts";
import { endPod } from "./end.ts";
import { podSettings } from "./settings.ts";

type BoundAccount = ClusterAccount & { pod: { name: string; uid: string } };

/**
 * A pod trades the token of its account for a credential of the lease API. It borrows for the team that its namespace
 * is given to, in the name of the person who answers for that namespace.
 */
export async function join(ctx: Context, raw: JoinPodInput): Promise<JoinPodAnswer> {
  const input = parse(joinPodInput, raw);
  authorize(ctx.principal, "pod.join");
  const { settings, pods } = await podSettings();
  const { clusterAccount } = await import("#server/launchers/kubernetes/cluster-account.ts");
  const account = await clusterAccount(settings, input.token, pods.audience);
  if (account?.pod === undefined)
    throw new SluiceError(
      "forbidden",
      `This is no token that the cluster made for a living pod and the audience ${pods.audience}.`,
    );
  const place = placeOf(pods, account.namespace, input.team);
  if (!place.ok) throw new SluiceError("forbidden", place.message);
  return await admitPod(ctx, { account: { ...account, pod: account.pod }, gpuType: input.gpuType, ...place });
}

type Admitted = { account: BoundAccount; team: string; person: string; gpuType: string };

/** Gives a pod that the cluster vouches for its row and a new credential; an older one of it is void. */
export async function admitPod(ctx: Context, { account, team, person, gpuType }: Admitted): Promise<JoinPodAnswer> {
  const name = `${account.namespace}/${account.pod.name}`;
  const credential = newSecret("slw");
  return await inTransaction(ctx, async (tx) => {
    const { teamId, userId } = await whoAnswers(tx, account.namespace, team, person);
    const [known] = await tx.db.select().from(workspaces).where(eq(workspaces.podUid, account.pod.uid)).for("update");
    if (known !== undefined && known.desired !== "running")
      throw new SluiceError(
        "conflict",
        `The pod ${name} has ended, or was stopped in Sluice; it borrows nothing more.`,
      );
    const id = known?.id ?? newId("pod");
    const changing = { credentialHash: hashSecret(credential), gpuType };
    if (known === undefined) {
      await endNamesake(tx, userId, name);
      await tx.db.insert(workspaces).values({
        ...{ id, name, teamId, ownerId: userId, podUid: account.pod.uid, launcher: "pod", ...changing },
        ...{ desired: "running", observed: "running", startedAt: tx.now(), createdAt: tx.now() },
      });
    } else {
      await tx.db.update(workspaces).set(changing).where(eq(workspaces.id, id));
    }
    const detail = { pod: name, uid: account.pod.uid, account: account.name, person };
    await audit(tx, { action: "pod.join", subject: id, teamId, detail });
    await notify(tx.db, "workspace", id);
    return { workspaceId: id, credential, name };
  });
}

async function whoAnswers(tx: Context, namespace: string, team: string, person: string) {
  const [found] = await tx.db
    .select({ teamId: teams.id, userId: users.id })
    .from(teams)
    .innerJoin(memberships, eq(memberships.teamId, teams.id))
    .innerJoin(users, and(eq(users.id, memberships.userId), eq(users.email, person), isNull(users.disabledAt)))
    .where(eq(teams.name, team));
  if (found !== undefined) return found;
  throw new SluiceError(
    "forbidden",
    `Nobody answers for the pods of the namespace ${namespace}: ${person} works in no team named ${team}. An admin invites them, or changes pods.namespaces in the Kubernetes settings.`,
  );
}

/** A pod of this name that was there before, and whose end nobody has seen yet. */
async function endNamesake(tx: Context, ownerId: string, name: string): Promise<void> {
  const [namesake] = await tx.db
    .select({ podUid: workspaces.podUid })
    .from(workspaces)
    .where(and(eq(workspaces.ownerId, ownerId), eq(workspaces.name, name), ne(workspaces.desired, "removed")));
  if (namesake?.podUid) await endPod(tx, { podUid: namesake.podUid });
}
