import { VersionTable } from "#components/environment/version-table.tsx";
import { LiveRefresh } from "#components/live/live.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { PageHeader } from "#components/ui/page.tsx";
import { listVersions } from "#server/services/image/list-versions.ts";
import { load, pageContext } from "../../page-context.ts";

export const metadata = { title: "Environments" };

/** What can be launched, and what could once. */
export default async function EnvironmentsPage() {
  const ctx = await pageContext();
  const { versions } = await load(() => listVersions(ctx));
  return (
    <>
      <LiveRefresh topics="setup,workspace" />
      <PageHeader
        title="Environments"
        detail="What people launch with. Their definitions come with this installation and change when it is updated."
      />
      {versions.length === 0 ? (
        <EmptyState title="There is no environment yet">They appear when the installation has started.</EmptyState>
      ) : (
        <VersionTable versions={versions} />
      )}
    </>
  );
}
