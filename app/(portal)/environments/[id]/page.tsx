import type { Metadata } from "next";
import { cache } from "react";
import { ApproveEnvironment } from "#components/environment/approve-environment.tsx";
import { checkSteps } from "#components/environment/check-steps.ts";
import { PackageTable } from "#components/environment/package-table.tsx";
import { ProposalActions } from "#components/environment/proposal-actions.tsx";
import { ProposalFacts } from "#components/environment/proposal-facts.tsx";
import { ProposeEnvironment } from "#components/environment/propose-environment.tsx";
import { VersionState } from "#components/environment/version-state.tsx";
import { plural } from "#components/format.ts";
import { LiveRefresh } from "#components/live/live.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { Link } from "#components/ui/link.tsx";
import { PageHeader, Section } from "#components/ui/page.tsx";
import { Steps } from "#components/ui/steps.tsx";
import type { ImageVersionDetail } from "#server/contracts/image.ts";
import { getVersion } from "#server/services/image/get-version.ts";
import { listEvents } from "#server/services/image/list-events.ts";
import { load, pageContext } from "../../../page-context.ts";
import { forProposals } from "../for-proposals.ts";

type Props = { params: Promise<{ id: string }> };

const readVersion = cache(async (id: string) => {
  const ctx = await pageContext();
  return await load(() => getVersion(ctx, { id }));
});

const titleOf = ({ proposed, image }: ImageVersionDetail) => proposed?.title ?? image.title;

export async function generateMetadata({ params }: Props): Promise<Metadata> {
  return { title: titleOf(await readVersion((await params).id)) };
}

/** What is inside an environment: its packages with versions and licences; of a proposal, how its check went. */
export default async function EnvironmentPage({ params }: Props) {
  const { id } = await params;
  const ctx = await pageContext();
  const version = await readVersion(id);
  const { image, packages, buildMessage, proposed, lock } = version;
  const wrong = proposed?.checkMessage ?? (proposed === null ? buildMessage : null);
  const { teams, bases, isAdmin } = await load(() => forProposals(ctx));
  const ours = proposed !== null && teams.some((team) => team.id === proposed.team?.id);
  const events = proposed === null ? [] : (await load(() => listEvents(ctx, { id, limit: 2000 }))).events;
  return (
    <>
      <LiveRefresh topics={["setup", "environment"]} />
      <PageHeader
        above={
          ours && (
            <Link href="/environments" className="underline-offset-4 hover:underline">
              Environments
            </Link>
          )
        }
        title={titleOf(version)}
        detail={proposed?.description ?? image.description}
        actions={
          ours && (
            <>
              {bases.length > 0 && version.state !== "testing" && (
                <ProposeEnvironment teams={teams} bases={bases} like={{ name: image.name, proposed }} />
              )}
              {proposed.approvedAt === null && version.state !== "retired" && (
                <ProposalActions
                  id={id}
                  title={proposed.title}
                  checked={proposed.check === "passed" || proposed.check === "failed"}
                />
              )}
              {isAdmin && proposed.check === "passed" && version.state !== "retired" && (
                <ApproveEnvironment id={id} title={proposed.title} teams={teams} chosen={version.teamIds} />
              )}
            </>
          )
        }
      />
      {wrong && (
        <p role="alert" className="mb-5 rounded-md bg-bad-soft px-3 py-2 break-words text-bad">
          {wrong}
        </p>
      )}
      {proposed !== null && (
        <div className="grid gap-x-8 xl:grid-cols-[minmax(0,1fr)_24rem]">
          <Section title="Check" detail={<VersionState version={version} />}>
            <Steps steps={checkSteps(events, proposed)} label="Steps of the check" />
          </Section>
          <Section title="Proposal">
            <ProposalFacts version={version} proposed={proposed} teams={teams} />
          </Section>
        </div>
      )}
      {packages !== null ? (
        <Section title="Packages" detail={told(version, packages)} className="max-w-4xl">
          <PackageTable packages={packages} />
        </Section>
      ) : (
        proposed === null && (
          <EmptyState title="Not built here yet">
            Its packages appear when the first workspace has been launched with it.
          </EmptyState>
        )
      )}
      {lock !== null && (
        <Section title="Lock" detail="Exact versions with their hashes. Only these are built" className="max-w-4xl">
          <details className="rounded-lg border border-line bg-surface">
            <summary className="px-3.5 py-2">Show {plural(lock.split("\n").length, "line")}</summary>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard */}
            <pre tabIndex={0} className="max-h-96 overflow-auto border-t border-line p-3.5 text-xs leading-5">
              {lock}
            </pre>
          </details>
        </Section>
      )}
    </>
  );
}

function told({ version }: ImageVersionDetail, packages: NonNullable<ImageVersionDetail["packages"]>): string {
  const silent = packages.filter(({ licence }) => licence === null).length;
  const which = silent === 1 ? "one does not" : `${silent} do not`;
  return `${plural(packages.length, "package")} in version ${version}; licences as the packages tell them${
    silent > 0 ? `, which ${which}` : ""
  }`;
}
