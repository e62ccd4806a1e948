import { FreeByType } from "#components/lease/free-by-type.tsx";
import { LeaseTable } from "#components/lease/lease-table.tsx";
import { QueueTable } from "#components/lease/queue-table.tsx";
import { LiveRefresh } from "#components/live/live.tsx";
import { ButtonLink } from "#components/ui/button-link.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { PageHeader, Section } from "#components/ui/page.tsx";
import { pageContext } from "../../page-context.ts";
import { readBoard } from "./my-gpus.ts";

export const metadata = { title: "GPUs" };

/** What I hold, what I wait for, and what would be granted now. */
export default async function GpusPage() {
  const { principal } = await pageContext();
  const { leases, requests, quotas } = await readBoard();
  const mine = requests.filter((request) => request.userId === principal.userId);
  return (
    <>
      <LiveRefresh topics={["mine"]} />
      <LiveRefresh topics={["lease", "pool"]} seconds={5} />
      <PageHeader title="GPUs" actions={<ButtonLink href="/gpus/works-here">Works here?</ButtonLink>} />
      <Section title="Yours">
        {leases.length === 0 ? (
          <EmptyState title="No GPU attached">
            In a notebook, <code>%gpu attach 0.5</code> borrows half a GPU; <code>%gpu detach</code> gives it back.
          </EmptyState>
        ) : (
          <LeaseTable caption="Your leases" leases={leases} show={["notebook", "extend", "end"]} />
        )}
      </Section>
      {mine.length > 0 && (
        <Section title="Waiting" detail="Stop in the notebook leaves the queue, as does the button under Why">
          <QueueTable
            rows={mine.map((request) => ({
              ...request,
              reason: request.reason.message,
              hint: request.reason.hint,
              canLeave: true,
            }))}
          />
        </Section>
      )}
      <Section title="Free now" detail="For your teams, by GPU type">
        {quotas.length === 0 ? (
          <EmptyState title="Your teams have no quota yet">
            An admin sets what a team may borrow of a GPU type.
          </EmptyState>
        ) : (
          <FreeByType quotas={quotas} requests={requests} />
        )}
      </Section>
    </>
  );
}
