import { DatasetTable } from "#components/dataset/dataset-table.tsx";
import { RegisterDataset } from "#components/dataset/register-dataset.tsx";
import { LiveRefresh } from "#components/live/live.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { PageHeader } from "#components/ui/page.tsx";
import { list } from "#server/services/dataset/list.ts";
import { me } from "#server/services/session/me.ts";
import { names as teamNames } from "#server/services/team/names.ts";
import { load, pageContext } from "../../page-context.ts";

export const metadata = { title: "Datasets" };

/** Files that workspaces can mount; admins and leads register them here. */
export default async function DatasetsPage() {
  const ctx = await pageContext();
  const [{ datasets }, person, all] = await load(() => Promise.all([list(ctx), me(ctx), teamNames(ctx)]));
  const { isAdmin } = ctx.principal;
  const teams = isAdmin ? all : person.teams.filter(({ role }) => role === "lead");
  const registers = isAdmin || teams.length > 0;
  return (
    <>
      <LiveRefresh topics={["dataset"]} />
      <PageHeader
        title="Datasets"
        detail="Files that a workspace finds at ~/datasets; chosen at launch or in its settings"
        actions={registers && <RegisterDataset teams={teams.map(({ id, name }) => ({ id, name }))} isAdmin={isAdmin} />}
      />
      {datasets.length === 0 ? (
        <EmptyState title="No dataset is registered yet">
          {registers
            ? "Register a folder, an NFS export, a bucket or a persistent volume, for a team or for everybody."
            : "A team lead or an admin registers files that are large, or used by many."}
        </EmptyState>
      ) : (
        <DatasetTable datasets={datasets} />
      )}
    </>
  );
}
