import { FreeByType } from "#components/lease/free-by-type.tsx";
import { LeaseTable } from "#components/lease/lease-table.tsx";
import { OwnUse } from "#components/lease/own-use.tsx";
import { QueueTable } from "#components/lease/queue-table.tsx";
import { LiveRefresh } from "#components/live/live.tsx";
import { NO_QUOTA, NO_QUOTA_STEP } from "#components/team/no-quota.ts";
import { ButtonLink } from "#components/ui/button-link.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { PageHeader, Section } from "#components/ui/page.tsx";
import { ownUse } from "#server/services/lease/own-use.ts";
import { load, pageContext } from "../../page-context.ts";
import { pageTimeZone } from "../../page-time-zone.ts";
import { readBoard } from "./my-gpus.ts";

export const metadata = { title: "GPUs" };

/** What I hold, what I wait for, and what would be granted now. */
export default async function GpusPage() {
  const ctx = await pageContext();
  const { principal } = ctx;
  const [{ leases, requests, quotas }, use] = await Promise.all([readBoard(), load(() => ownUse(ctx))]);
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
        <Section title="Waiting" detail="To leave the queue, use Stop in the notebook or the button under Why">
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
      <OwnUse use={use} zone={await pageTimeZone()} />
      <Section title="Free now" detail="For your teams, by GPU type">
        {quotas.length === 0 ? (
          <EmptyState title={NO_QUOTA}>{NO_QUOTA_STEP}</EmptyState>
        ) : (
          <FreeByType quotas={quotas} requests={requests} />
        )}
      </Section>
    </>
  );
}
