import type { Metadata } from "next";
import { Copyable } from "#components/ui/copy.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { Card, Facts, Section } from "#components/ui/page.tsx";
import { CollaboratorTable } from "#components/workspace-collaborator/collaborator-table.tsx";
import { InviteCollaborator } from "#components/workspace-collaborator/invite-collaborator.tsx";
import { list } from "#server/services/workspace-collaborator/list.ts";
import { load, pageContext } from "../../../../page-context.ts";
import { readWorkspace, WorkspaceFrame } from "../workspace-frame.tsx";

type Props = { params: Promise<{ id: string }> };

export async function generateMetadata({ params }: Props): Promise<Metadata> {
  return { title: `People of ${(await readWorkspace((await params).id)).name}` };
}

/** Whose it is, whom they let in, and the link for them. */
export default async function WorkspacePeoplePage({ params }: Props) {
  const ctx = await pageContext();
  const workspace = await readWorkspace((await params).id);
  const { collaborators, link } = await load(() => list(ctx, { id: workspace.id }));
  const mine = workspace.can.change;
  return (
    <WorkspaceFrame workspace={workspace} tab="people">
      <div className="max-w-3xl">
        <Section
          title="Collaborators"
          detail="Viewers see files and saved results; editors work in the notebooks as the owner does."
          actions={mine && <InviteCollaborator workspace={workspace} />}
        >
          {collaborators.length > 0 ? (
            <CollaboratorTable workspace={workspace} collaborators={collaborators} me={ctx.principal.userId} />
          ) : (
            <EmptyState title={mine ? "Only you come in" : "Nobody else was invited"}>
              {mine
                ? "Invite a colleague to look at your notebooks, or to work in them with you."
                : `Only ${workspace.owner.name} can invite somebody.`}
            </EmptyState>
          )}
        </Section>
        <Section
          title="Link"
          detail="Opens the workspace for the people above after they sign in. Other people see the owner's name."
        >
          <Card className="px-4 py-3.5">
            <Copyable text={link} label="Link to this workspace" />
          </Card>
        </Section>
        <Section title="What to know">
          <Card className="px-4 py-3.5">
            <Facts
              rows={[
                ["Owner", workspace.owner.name],
                [
                  "GPUs",
                  `Whoever attaches one, it counts for ${workspace.owner.name} and team ${workspace.team.name}.`,
                ],
                [
                  "Saving",
                  "Each works on a copy of their own: when two save the same notebook, JupyterLab asks the second whose version stays.",
                ],
                [
                  "Secrets",
                  "The settings show them to the owner alone. An editor's code runs with them, as every notebook here does.",
                ],
                ["Record", "Who opened it and when is in the audit."],
              ]}
            />
          </Card>
        </Section>
      </div>
    </WorkspaceFrame>
  );
}
