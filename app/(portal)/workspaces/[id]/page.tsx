import type { Metadata } from "next";
import { WorkspaceDatasets } from "#components/dataset/workspace-datasets.tsx";
import { formatAmount } from "#components/format.ts";
import { EndsIn } from "#components/lease/ends-in.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { Card, Facts, Section } from "#components/ui/page.tsx";
import { Steps } from "#components/ui/steps.tsx";
import { RelativeTime, Remaining } from "#components/ui/time.tsx";
import { stepsOf } from "#components/workspace/event-steps.ts";
import { RefusedConnections } from "#components/workspace/refused-connections.tsx";
import { SizeInWords } from "#components/workspace/size-in-words.tsx";
import { UsageCharts } from "#components/workspace/usage-charts.tsx";
import { events } from "#server/services/workspace/events.ts";
import { refusals as listRefusals } from "#server/services/workspace/refusals.ts";
import { samples } from "#server/services/workspace/samples.ts";
import { list as listDatasets } from "#server/services/workspace-dataset/list.ts";
import { load, pageContext } from "../../../page-context.ts";
import { pageTimeZone } from "../../../page-time-zone.ts";
import { readWorkspace, WorkspaceFrame } from "./workspace-frame.tsx";

type Props = { params: Promise<{ id: string }>; searchParams: Promise<Record<string, string | string[] | undefined>> };

export async function generateMetadata({ params }: Props): Promise<Metadata> {
  return { title: (await readWorkspace((await params).id)).name };
}

/** Overview: the steps of this start as they happen, the GPU it holds, and what it is. */
export default async function WorkspacePage({ params, searchParams }: Props) {
  const { id } = await params;
  const ctx = await pageContext();
  const workspace = await readWorkspace(id);
  const asked = Number((await searchParams).minutes);
  const minutes = [60, 360, 1440].find((each) => each === asked) ?? 60;
  const [log, chart, { datasets }, { refusals }] = await load(() =>
    Promise.all([
      events(ctx, { id, generation: workspace.generation, limit: 2000 }),
      samples(ctx, { id, minutes }),
      listDatasets(ctx, { id }),
      listRefusals(ctx, { id }),
    ]),
  );
  const steps = stepsOf(log.events);
  return (
    <WorkspaceFrame workspace={workspace} tab="overview">
      {workspace.observed === "failed" && (
        <p role="alert" className="mb-5 rounded-md bg-bad-soft px-3 py-2 text-bad">
          {workspace.message ?? "It could not be started. The failed step below says why."}
        </p>
      )}
      {["running", "stopped"].includes(workspace.observed) && workspace.message && (
        <p role="status" className="mb-5 rounded-md bg-warn-soft px-3 py-2 text-warn">
          {workspace.message}
          {workspace.movesAt && (
            <>
              {" "}
              That is in <Remaining until={workspace.movesAt} />.
            </>
          )}
        </p>
      )}
      {(workspace.observed === "running" || chart.samples.length > 0) && (
        <UsageCharts
          {...{ chart, minutes }}
          size={workspace.size}
          base={`/workspaces/${id}`}
          csv={`/api/v1/workspaces/${id}/samples?minutes=${minutes}&format=csv`}
          zone={await pageTimeZone()}
        />
      )}
      {refusals.length > 0 && (
        <Section
          title="Refused connections"
          detail={`Connections that the outgoing network policy of team ${workspace.team.name} refused. Ask an admin to change the policy.`}
        >
          <RefusedConnections refusals={refusals} />
        </Section>
      )}
      <div className="grid gap-x-8 xl:grid-cols-[minmax(0,1fr)_22rem]">
        <Section title={workspace.generation > 1 ? `Steps of start ${workspace.generation}` : "Steps"}>
          {steps.length > 0 ? (
            <Steps steps={steps} label="Steps of the start" />
          ) : workspace.desired === "running" ? (
            <EmptyState title="Waiting for the broker to begin">
              The first step appears here as soon as it starts.
            </EmptyState>
          ) : (
            <EmptyState title="It is stopped">Start it to see its steps here. Files and packages are kept.</EmptyState>
          )}
        </Section>
        <div>
          <Section title="GPU">
            {workspace.leases.length === 0 ? (
              <Card className="px-3.5 py-3">
                <p>None attached.</p>
                <p className="mt-0.5 text-sm text-ink-2">
                  In a notebook: <code>%gpu attach {workspace.defaultAmount}</code>
                </p>
              </Card>
            ) : (
              <ul className="divide-y divide-line rounded-lg border border-line bg-surface">
                {workspace.leases.map((lease) => (
                  <li key={lease.id} className="px-3.5 py-2.5">
                    <p className="figures font-medium">
                      {formatAmount(lease.milli)} of {lease.deviceName} on {lease.serverName}
                    </p>
                    <p className="text-sm text-ink-2">
                      {lease.label && `${lease.label}, `}
                      {lease.state === "unreachable"
                        ? "its GPU server does not answer"
                        : lease.state === "ending"
                          ? "ending"
                          : ""}
                      {(lease.state === "granted" || lease.state === "active") && (
                        <EndsIn lease={lease} verb="ends in" />
                      )}
                    </p>
                  </li>
                ))}
              </ul>
            )}
          </Section>
          {datasets.length > 0 && (
            <Section title="Datasets">
              <WorkspaceDatasets datasets={datasets} />
            </Section>
          )}
          <Section title="About">
            <Card className="px-3.5 py-3">
              <Facts
                rows={[
                  ["Environment", `${workspace.image.title} ${workspace.image.version}`],
                  ["Owner", workspace.owner.name],
                  ["Team", workspace.team.name],
                  ["Size", <SizeInWords key="size" workspace={workspace} />],
                  ["Default amount", `${workspace.defaultAmount} ${workspace.gpuType}`],
                  ["Launched", <RelativeTime key="launched" at={workspace.createdAt} />],
                ]}
              />
            </Card>
          </Section>
        </div>
      </div>
    </WorkspaceFrame>
  );
}
