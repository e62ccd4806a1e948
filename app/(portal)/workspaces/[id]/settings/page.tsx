import type { Metadata } from "next";
import { ChooseDatasets } from "#components/dataset/choose-datasets.tsx";
import { plural } from "#components/format.ts";
import { Card, Facts, Section } from "#components/ui/page.tsx";
import { ExactTime } from "#components/ui/time.tsx";
import { GpuPolicyForm } from "#components/workspace/gpu-policy-form.tsx";
import { IdleLimitForm } from "#components/workspace/idle-limit-form.tsx";
import { RemoveWorkspace } from "#components/workspace/remove-workspace.tsx";
import { sizeChoices } from "#components/workspace/size-choice.ts";
import { SizeForm } from "#components/workspace/size-form.tsx";
import { VariableSection } from "#components/workspace-variable/variable-section.tsx";
import { list as listDatasets } from "#server/services/workspace-dataset/list.ts";
import { list as listSizes } from "#server/services/workspace-size/list.ts";
import { list as listVariables } from "#server/services/workspace-variable/list.ts";
import { load, pageContext } from "../../../../page-context.ts";
import { datasetChoices } from "../../dataset-choices.ts";
import { readWorkspace, WorkspaceFrame } from "../workspace-frame.tsx";

type Props = { params: Promise<{ id: string }> };

export async function generateMetadata({ params }: Props): Promise<Metadata> {
  return { title: `Settings of ${(await readWorkspace((await params).id)).name}` };
}

/** What it was launched with, and its end. */
export default async function WorkspaceSettingsPage({ params }: Props) {
  const ctx = await pageContext();
  const workspace = await readWorkspace((await params).id);
  const variables = workspace.can.change ? await load(() => listVariables(ctx, { id: workspace.id })) : undefined;
  const sizes = workspace.can.change ? await load(() => listSizes(ctx)) : undefined;
  const choices = workspace.can.change ? await load(() => datasetChoices(ctx)) : [];
  const { datasets: chosen, version } = await load(() => listDatasets(ctx, { id: workspace.id }));
  return (
    <WorkspaceFrame workspace={workspace} tab="settings">
      <div className="max-w-3xl">
        <Section title="Launched with" detail="Chosen at launch, cannot be changed">
          <Card className="px-4 py-3.5">
            <Facts
              rows={[
                [
                  "Environment",
                  `${workspace.image.title} (${workspace.image.name}, version ${workspace.image.version.slice(0, 12)})`,
                ],
                ["GPU type", workspace.gpuType],
                [
                  "Runs as",
                  workspace.launcher === "local" ? "a sandboxed process on this machine" : workspace.launcher,
                ],
                ["Owner", workspace.owner.name],
                ["Team", workspace.team.name],
                ["Launched", <ExactTime key="launched" at={workspace.createdAt} />],
                ["Id", <code key="id">{workspace.id}</code>],
              ]}
            />
          </Card>
        </Section>
        {sizes && (
          <Section title="Size" detail="Applies from the next start, like a change of the size by an admin.">
            <Card className="px-4 py-3.5">
              <SizeForm workspace={workspace} choices={sizeChoices(sizes, workspace.team.id, workspace.launcher)} />
            </Card>
          </Section>
        )}
        {workspace.can.change && (
          <Section title="GPU policy" detail="Applies to new requests. Attached GPUs stay">
            <Card className="px-4 py-3.5">
              <GpuPolicyForm workspace={workspace} />
            </Card>
          </Section>
        )}
        {workspace.can.change && (
          <Section
            title="Idle limit"
            detail="The workspace stops after this time without a busy notebook, a save, GPU work or a tenth of a core in use. Files and packages are kept."
          >
            <Card className="px-4 py-3.5">
              <IdleLimitForm workspace={workspace} />
            </Card>
          </Section>
        )}
        {workspace.can.change && (choices.length > 0 || chosen.length > 0) && (
          <Section
            title="Datasets"
            detail="Mounted at ~/datasets. What is changed here counts from the next start of the workspace on."
          >
            <Card className="px-4 py-3.5">
              <ChooseDatasets
                version={version}
                workspace={workspace}
                choices={choices}
                chosen={chosen.map(({ id }) => id)}
              />
            </Card>
          </Section>
        )}
        {variables && <VariableSection workspaceId={workspace.id} list={variables} />}
        {workspace.can.remove && (
          <Section title="Remove">
            <Card className="flex flex-wrap items-center justify-between gap-3 px-4 py-3.5">
              <p className="max-w-prose text-ink-2">
                {workspace.filesKeptDays > 0
                  ? `Ends its notebooks and leases. Files and installed packages are kept for ${plural(workspace.filesKeptDays, "day")}, then deleted.`
                  : "Deletes all of its files and installed packages, and ends its leases."}{" "}
                The audit and the GPU history stay.
              </p>
              <RemoveWorkspace workspace={workspace} />
            </Card>
          </Section>
        )}
      </div>
    </WorkspaceFrame>
  );
}
