import Link from "next/link";
import { LiveRefresh } from "#components/live/live.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { PageHeader } from "#components/ui/page.tsx";
import { LaunchForm } from "#components/workspace/launch-form.tsx";
import { list as listImages } from "#server/services/image/list.ts";
import { me } from "#server/services/session/me.ts";
import { list as listWorkspaces } from "#server/services/workspace/list.ts";
import { load, pageContext } from "../../../page-context.ts";
import { readBoard } from "../../gpus/my-gpus.ts";

export const metadata = { title: "Launch a workspace" };

/** Choose an environment and launch. */
export default async function LaunchPage() {
  const ctx = await pageContext();
  const [{ images }, person, gpus, { workspaces }] = await load(() =>
    Promise.all([listImages(ctx), me(ctx), readBoard(), listWorkspaces(ctx)]),
  );
  const teams = person.teams.map((team) => ({
    id: team.id,
    name: team.name,
    types: gpus.quotas.filter((quota) => quota.teamId === team.id),
  }));
  return (
    <>
      <LiveRefresh topics="lease,pool" />
      <PageHeader
        title="Launch a workspace"
        above={
          <Link href="/workspaces" className="underline-offset-4 hover:underline">
            Workspaces
          </Link>
        }
      />
      {images.length === 0 ? (
        <EmptyState title="No environment is approved yet">
          An admin approves environments before they can be launched.
        </EmptyState>
      ) : teams.length === 0 ? (
        <EmptyState title="You belong to no team yet">
          A workspace belongs to a team. Ask a team lead or an admin to add {person.email}.
        </EmptyState>
      ) : (
        <LaunchForm images={images} teams={teams} suggestedName={freeName(workspaces.map((each) => each.name))} />
      )}
    </>
  );
}

/** `notebooks`, `notebooks-2`, …: the first that one does not have yet. */
function freeName(taken: string[]): string {
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? "notebooks" : `notebooks-${number}`;
    if (!taken.includes(name)) return name;
  }
}
