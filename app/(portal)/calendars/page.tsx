import { notFound } from "next/navigation";
import { PlainQuotas } from "#components/calendar/plain-quotas.tsx";
import { QuotaCalendar, type QuotaCalendarView } from "#components/calendar/quota-calendar.tsx";
import { TypeCalendar } from "#components/calendar/type-calendar.tsx";
import { LiveRefresh } from "#components/live/live.tsx";
import { ReservationTable } from "#components/reservation/reservation-table.tsx";
import { ReservationWeek } from "#components/reservation/reservation-week.tsx";
import { Reserve } from "#components/reservation/reserve.tsx";
import { EmptyState } from "#components/ui/empty-state.tsx";
import { PageHeader, Section } from "#components/ui/page.tsx";
import { compareNames } from "#server/contracts/names.ts";
import { list as listCalendars } from "#server/services/calendar/list.ts";
import { list as listReservations } from "#server/services/reservation/list.ts";
import { names as teamNames } from "#server/services/team/names.ts";
import { load, pageContext } from "../../page-context.ts";
import { pageTimeZone } from "../../page-time-zone.ts";

export const metadata = { title: "Calendars" };

/** What differs by the clock: which work a GPU type takes, what teams are guaranteed, what is reserved. */
export default async function CalendarsPage() {
  const ctx = await pageContext();
  if (!ctx.principal.isAdmin) notFound();
  const [{ calendars, timeZone }, { reservations }, teams] = await load(() =>
    Promise.all([listCalendars(ctx), listReservations(ctx), teamNames(ctx)]),
  );
  const nameOf = (teamId: string) => teams.find((team) => team.id === teamId)?.name ?? "";
  const named = reservations.map((one) => ({ ...one, teamName: nameOf(one.teamId), mayRemove: true }));
  const typesOf = (teamId: string) =>
    calendars.flatMap(({ gpuType, quotas }) => (quotas.some((quota) => quota.teamId === teamId) ? [gpuType] : []));
  const reservable = teams
    .map((team) => ({ ...team, gpuTypes: typesOf(team.id) }))
    .filter(({ gpuTypes }) => gpuTypes.length > 0);
  return (
    <>
      <LiveRefresh topics={["pool"]} />
      <PageHeader title="Calendars" detail={`What differs by weekday and hour (${timeZone}), and what is reserved`} />
      <Section
        title="Reservations"
        detail="On top of a team's guarantee, for a time"
        actions={reservable.length > 0 && <Reserve teams={reservable} />}
      >
        {reservations.length === 0 ? (
          <EmptyState title="Nothing is reserved">
            A reservation keeps a part of the pool for a team and a time: a class on Tuesday from 10 to 12, once or
            every week.
          </EmptyState>
        ) : (
          <>
            <ReservationWeek reservations={named} now={ctx.now()} zone={await pageTimeZone()} />
            <ReservationTable showTeam reservations={named} />
          </>
        )}
      </Section>
      {calendars.map((calendar) => (
        <Section key={calendar.gpuType} title={calendar.gpuType}>
          <div className="grid gap-3 xl:grid-cols-2">
            <TypeCalendar calendar={calendar} timeZone={timeZone} />
            {byName(calendar.quotas, ({ windows }) => windows.length > 0).map((quota) => (
              <QuotaCalendar
                key={quota.teamId}
                gpuType={calendar.gpuType}
                quota={quota}
                title={`team ${quota.teamName}`}
                timeZone={timeZone}
                mayEdit
              />
            ))}
          </div>
          <PlainQuotas
            gpuType={calendar.gpuType}
            quotas={byName(calendar.quotas, ({ windows }) => windows.length === 0)}
            timeZone={timeZone}
          />
        </Section>
      ))}
      {calendars.length === 0 && (
        <EmptyState title="No GPU type yet">
          Add a GPU server on the pool page, or a quota on the page of a team.
        </EmptyState>
      )}
    </>
  );
}

/** Those that match, team-2 before team-10. */
function byName(quotas: QuotaCalendarView[], matches: (quota: QuotaCalendarView) => boolean): QuotaCalendarView[] {
  return quotas.filter(matches).sort((a, b) => compareNames(a.teamName, b.teamName));
}
