import { ButtonLink } from "#components/ui/button-link.tsx";
import { PageHeader } from "#components/ui/page.tsx";

/** What does not exist and what one may not see look alike. */
export default function NotFound() {
  return (
    <>
      <PageHeader
        title="Nothing here"
        detail="It does not exist, was removed, or you may not see it. Ask a team lead or an admin."
      />
      <ButtonLink href="/workspaces">To the workspaces</ButtonLink>
    </>
  );
}
