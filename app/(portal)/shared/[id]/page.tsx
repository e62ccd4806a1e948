import { redirect } from "next/navigation";
import { ButtonLink } from "#components/ui/button-link.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { PageHeader } from "#components/ui/page.tsx";
import { readLink } from "#server/services/workspace-collaborator/read-link.ts";
import { load, pageContext } from "../../../page-context.ts";

export const metadata = { title: "Shared workspace" };

/** Where a link to a workspace leads: those who were invited to it, everybody else to whom they can ask. */
export default async function SharedPage({ params }: { params: Promise<{ id: string }> }) {
  const { id } = await params;
  const ctx = await pageContext();
  const { invited, owner } = await load(() => readLink(ctx, { id }));
  if (invited) redirect(`/workspaces/${id}`);
  return (
    <>
      <PageHeader title="Shared workspace" />
      <EmptyState
        title="It is not shared with you yet"
        action={
          <ButtonLink href={`mailto:${owner.email}`} variant="primary">
            Write to {owner.name}
          </ButtonLink>
        }
      >
        {owner.name} can invite you as a viewer or an editor, under People on the workspace&rsquo;s page. Tell them that
        you are signed in as {ctx.principal.name} ({ctx.principal.email}). The same link works then.
      </EmptyState>
    </>
  );
}
