import { and, asc, eq, ne, notInArray, or } from "drizzle-orm";
import type { Context } from "#server/context.ts";
import { leaseRequests, leases, users, workspaces } from "#server/db/schema/index.ts";
import { SluiceError } from "#server/errors.ts";

/** So many are named; of the others it says how many there are. */
const NAMED = 5;

/** Refuses while a team has workspaces, leases or requests in the queue, and says which. */
export async function refuseInUse({ db }: Context, { id, name }: { id: string; name: string }): Promise<void> {
  const [spaces, held, waiting] = await Promise.all([
    db
      .select({ id: workspaces.id, name: workspaces.name, owner: users.name })
      .from(workspaces)
      .innerJoin(users, eq(users.id, workspaces.ownerId))
      .where(
        and(
          eq(workspaces.teamId, id),
          // A removed workspace counts until its processes have ended. Kept files do not count.
          or(ne(workspaces.desired, "removed"), notInArray(workspaces.observed, ["removed", "stopped"])),
        ),
      )
      .orderBy(asc(workspaces.name), asc(users.name)),
    db.$count(leases, and(eq(leases.teamId, id), ne(leases.state, "ended"))),
    db.$count(leaseRequests, and(eq(leaseRequests.teamId, id), eq(leaseRequests.state, "queued"))),
  ]);
  const counted = [
    ...count(spaces.length, "workspace", `: ${named(spaces.map((one) => `${one.name} of ${one.owner}`))}`),
    ...count(held, "lease"),
    ...count(waiting, "request in the queue", "", "requests in the queue"),
  ];
  if (counted.length === 0) return;
  throw new SluiceError(
    "conflict",
    `Team ${name} still has ${counted.join("; ")}. Have its people remove their workspaces, or remove them on the page Workspaces: leases and requests end with them.`,
    { workspaces: spaces.map((one) => one.id), leases: held, requests: waiting },
  );
}

function count(n: number, one: string, more = "", many = `${one}s`): string[] {
  return n === 0 ? [] : [`${n} ${n === 1 ? one : many}${more}`];
}

function named(names: readonly string[]): string {
  const more = names.length - NAMED;
  return more > 0 ? `${names.slice(0, NAMED).join(", ")} and ${more} more` : names.join(", ");
}
