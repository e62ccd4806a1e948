import type { Metadata } from "next";
import { notFound } from "next/navigation";
import { cache } from "react";
import { QuotaCalendar } from "#components/calendar/quota-calendar.tsx";
import { formatAmount, plural } from "#components/format.ts";
import { LeaseTable } from "#components/lease/lease-table.tsx";
import { QueueTable } from "#components/lease/queue-table.tsx";
import { LiveRefresh } from "#components/live/live.tsx";
import { ReservationTable } from "#components/reservation/reservation-table.tsx";
import { ReservationWeek } from "#components/reservation/reservation-week.tsx";
import { Reserve } from "#components/reservation/reserve.tsx";
import { ArchiveTeam } from "#components/team/archive-team.tsx";
import { BudgetCard } from "#components/team/budget-card.tsx";
import { EditEgress } from "#components/team/edit-egress.tsx";
import { EditPolicy } from "#components/team/edit-policy.tsx";
import { EditQuota } from "#components/team/edit-quota.tsx";
import { EgressCard } from "#components/team/egress-card.tsx";
import { MemberTable } from "#components/team/member-table.tsx";
import { NO_QUOTA, NO_QUOTA_STEP } from "#components/team/no-quota.ts";
import { PolicyCard } from "#components/team/policy-card.tsx";
import { limitNow, QuotaBar } from "#components/team/quota-bar.tsx";
import { QuotaRequestTable } from "#components/team/quota-request-table.tsx";
import { RequestMore } from "#components/team/request-more.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { Link } from "#components/ui/link.tsx";
import { Card, PageHeader, Section } from "#components/ui/page.tsx";
import { InvitationTable } from "#components/user/invitation-table.tsx";
import { InvitePerson } from "#components/user/invite-person.tsx";
import { isAllowed } from "#server/auth/authorize.ts";
import type { QuotaRequestView } from "#server/contracts/sharing.ts";
import type { QuotaView } from "#server/contracts/team.ts";
import { env } from "#server/env.ts";
import { list as listCalendars } from "#server/services/calendar/list.ts";
import { inPool } from "#server/services/gpu-type/in-pool.ts";
import { teamLeases } from "#server/services/lease/team-leases.ts";
import { teamQueue } from "#server/services/lease/team-queue.ts";
import { list as listQuotaRequests } from "#server/services/quota-request/list.ts";
import { list as listReservations } from "#server/services/reservation/list.ts";
import { budget as readBudget } from "#server/services/team/budget.ts";
import { get } from "#server/services/team/get.ts";
import { names as teamNames } from "#server/services/team/names.ts";
import { readEgressPolicy } from "#server/services/team/read-egress-policy.ts";
import { readPolicy } from "#server/services/team/read-policy.ts";
import { listInvitations } from "#server/services/user/list-invitations.ts";
import { load, pageContext } from "../../../page-context.ts";
import { pageTimeZone } from "../../../page-time-zone.ts";

type Props = { params: Promise<{ name: string }>; searchParams: Promise<{ more?: string }> };

const readTeam = cache(async (name: string) => {
  const ctx = await pageContext();
  const teams = await load(() => teamNames(ctx));
  const found = teams.find((team) => team.name === name);
  if (!found) notFound();
  return await load(() => get(ctx, { id: found.id }));
});

export async function generateMetadata({ params }: Props): Promise<Metadata> {
  return { title: `Team ${(await readTeam((await params).name)).name}` };
}

/** A team: its one bar for each GPU type, who holds what, who waits, and its people. */
export default async function TeamPage({ params, searchParams }: Props) {
  const ctx = await pageContext();
  const team = await readTeam((await params).name);
  const mayInvite = isAllowed(ctx.principal, "user.invite", { teamId: team.id });
  const [{ leases }, waiting, budget, asked, policy, egress, { calendars, timeZone }, reserved, capacity] = await load(
    () =>
      Promise.all([
        teamLeases(ctx, { id: team.id }),
        teamQueue(ctx, { id: team.id }),
        readBudget(ctx, { id: team.id }),
        listQuotaRequests(ctx),
        readPolicy(ctx, { id: team.id }),
        readEgressPolicy(ctx, { id: team.id }),
        listCalendars(ctx),
        listReservations(ctx),
        inPool(ctx),
      ]),
  );
  const { invitations } = mayInvite ? await load(() => listInvitations(ctx, { teamId: team.id })) : { invitations: [] };
  const may = (action: Parameters<typeof isAllowed>[1]) => isAllowed(ctx.principal, action, { teamId: team.id });
  const more = asked.requests.filter((request) => request.teamId === team.id);
  const reservations = reserved.reservations
    .filter((one) => one.teamId === team.id)
    .map((one) => ({ ...one, teamName: team.name, mayRemove: may("reservation.remove") }));
  const quotaCalendars = calendars.flatMap(({ gpuType, quotas }) =>
    quotas.filter((quota) => quota.teamId === team.id).map((quota) => ({ gpuType, quota })),
  );
  const nameOf = (userId: string) =>
    team.members.find((member) => member.userId === userId)?.name ?? "somebody who left";
  const wanted = Number((await searchParams).more);
  const onCluster = env().SLUICE_LAUNCHERS.includes("kubernetes");
  return (
    <>
      <LiveRefresh topics={["people"]} />
      <LiveRefresh topics={["lease", "pool"]} seconds={5} />
      <PageHeader
        above={
          <Link href="/teams" className="underline-offset-4 hover:underline">
            {ctx.principal.isAdmin ? "Teams & quotas" : "Teams"}
          </Link>
        }
        title={`Team ${team.name}`}
        detail={`${plural(team.memberCount, "person", "people")}, ${plural(team.workspaceCount, "workspace")}`}
        actions={
          <>
            {may("team.archive") && <ArchiveTeam team={team} />}
            {mayInvite && <InvitePerson teams={[{ id: team.id, name: team.name }]} />}
          </>
        }
      />
      <Section
        title="Quota"
        actions={
          <>
            {may("quota-request.ask") && team.quotas.length > 0 && (
              <RequestMore
                teamId={team.id}
                gpuTypes={team.quotas.map((quota) => quota.gpuType)}
                {...(wanted > 0 && { initialGpus: wanted })}
              />
            )}
            {may("team.set-quota") && (
              <EditQuota
                teamId={team.id}
                teamName={team.name}
                types={[...capacity.keys()].filter((gpuType) =>
                  team.quotas.every((quota) => quota.gpuType !== gpuType),
                )}
              />
            )}
          </>
        }
      >
        {team.quotas.length === 0 ? (
          <EmptyState title={NO_QUOTA}>{may("team.set-quota") ? "Add a GPU type." : NO_QUOTA_STEP}</EmptyState>
        ) : (
          <div className="flex flex-col gap-3">
            {team.quotas.map((quota) => (
              <Card key={quota.gpuType} className="px-4 py-3.5">
                <div className="mb-2.5 flex items-center justify-between gap-3">
                  <h3 className="font-medium">{quota.gpuType}</h3>
                  {may("team.set-quota") && <EditQuota teamId={team.id} teamName={team.name} quota={quota} />}
                </div>
                <QuotaBar quota={quota} />
                {quota.personMilli !== null && (
                  <p className="figures mt-1.5 text-sm text-ink-2">
                    Limit per person: {formatAmount(quota.personMilli)} {quota.gpuType}
                  </p>
                )}
              </Card>
            ))}
          </div>
        )}
      </Section>
      {more.length > 0 && (
        <Section title="Requests for more" detail="On top of the quota while they last">
          <QuotaRequestTable
            requests={more.map((request) => ({
              ...request,
              who: nameOf(request.userId),
              beyondPool: beyondPool(request, team.quotas, capacity),
            }))}
            mayDecide={may("quota-request.decide")}
          />
        </Section>
      )}
      {budget.budgets.length > 0 && (
        <Section title={`Budget of ${budget.month}`} detail="GPU-hours that are left this month">
          <div className="grid gap-3 xl:grid-cols-2">
            {budget.budgets.map((one) => (
              <BudgetCard
                key={one.gpuType}
                budget={one}
                month={budget.month}
                endsAt={budget.endsAt}
                csv={`/api/v1/teams/${team.id}/budget?format=csv`}
              />
            ))}
          </div>
        </Section>
      )}
      <Section title="Who holds what">
        {leases.length === 0 && team.quotas.length === 0 ? (
          <EmptyState title="The team has no leases">{NO_QUOTA}.</EmptyState>
        ) : leases.length === 0 ? (
          <EmptyState title="The team has no leases">
            The whole quota of the team is free: <code>%gpu attach 0.5</code> in a notebook borrows half a GPU.
          </EmptyState>
        ) : (
          <LeaseTable
            caption="Leases of the team"
            leases={leases}
            show={may("lease.end") ? ["holder", "end"] : ["holder"]}
          />
        )}
      </Section>
      {waiting.length > 0 && (
        <Section title="Queue">
          <QueueTable
            rows={waiting.map((request) => ({
              ...request,
              reason: request.reason.message,
              hint: request.reason.hint,
              canLeave: isAllowed(ctx.principal, "lease.leave-queue", { teamId: team.id, ownerId: request.userId }),
            }))}
          />
        </Section>
      )}
      {(reservations.length > 0 || may("reservation.create")) && team.quotas.length > 0 && (
        <Section
          title="Reservations"
          detail="On top of the guarantee while they last"
          actions={
            may("reservation.create") && (
              <Reserve
                teams={[{ id: team.id, name: team.name, gpuTypes: team.quotas.map(({ gpuType }) => gpuType) }]}
              />
            )
          }
        >
          {reservations.length === 0 ? (
            <EmptyState title="Nothing is reserved">
              A reservation keeps a part of the pool for the team and a time: a class on Tuesday from 10 to 12, once or
              every week.
            </EmptyState>
          ) : (
            <>
              <ReservationWeek reservations={reservations} now={ctx.now()} zone={await pageTimeZone()} />
              <ReservationTable reservations={reservations} />
            </>
          )}
        </Section>
      )}
      {quotaCalendars.some(({ quota }) => quota.windows.length > 0 || may("team.set-quota")) && (
        <Section title="Calendar" detail={`Where the quota differs by weekday and hour (${timeZone})`}>
          <div className="grid gap-3 xl:grid-cols-2">
            {quotaCalendars.map(({ gpuType, quota }) => (
              <QuotaCalendar
                key={gpuType}
                gpuType={gpuType}
                quota={quota}
                title={gpuType}
                timeZone={timeZone}
                mayEdit={may("team.set-quota")}
              />
            ))}
          </div>
        </Section>
      )}
      <Section
        title="Policy"
        detail="Lease times, reclaim times, and whether teams share a GPU"
        actions={may("team.set-policy") && <EditPolicy teamId={team.id} teamName={team.name} policy={policy} />}
      >
        <PolicyCard policy={policy} />
      </Section>
      <Section
        title="Outgoing network"
        detail="Destinations that workspaces of the team may connect to"
        actions={
          may("team.set-egress-policy") && (
            <EditEgress teamId={team.id} teamName={team.name} policy={egress} onCluster={onCluster} />
          )
        }
      >
        <EgressCard policy={egress} onCluster={onCluster} />
      </Section>
      <Section title="People">
        <MemberTable team={team} mayChange={may("team.remove-member")} />
      </Section>
      {invitations.length > 0 && (
        <Section title="Invitations" detail="Sent, not accepted yet">
          <InvitationTable teamId={team.id} invitations={invitations} />
        </Section>
      )}
    </>
  );
}

/** A warning where the limit with the increase exceeds the pool, so that the increase has no effect. */
function beyondPool(
  { gpuType, limitMilli, state }: QuotaRequestView,
  quotas: readonly QuotaView[],
  capacity: ReadonlyMap<string, number>,
): string | undefined {
  const quota = quotas.find((one) => one.gpuType === gpuType);
  if (quota === undefined || state === "refused") return undefined;
  // `limitNow` already has an approved increase that is in effect.
  const sum = state === "approved" ? limitNow(quota) : limitNow(quota) + limitMilli;
  const there = capacity.get(gpuType) ?? 0;
  return sum > there ? `limit ${formatAmount(sum)}, the pool has ${formatAmount(there)}` : undefined;
}
