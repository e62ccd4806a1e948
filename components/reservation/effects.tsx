import { formatAmount } from "#components/format.ts";
import type { ReservationEffects } from "#server/contracts/sharing.ts";

/** How many reservations it makes, and whom the first of them displaces. `forPerson`: nobody else may use it. */
export function Effects({
  effects: { count, displaced },
  forPerson,
  zone,
}: {
  effects: ReservationEffects;
  forPerson: boolean;
  /** In which the times were typed. */
  zone: string;
}) {
  const which = count > 1 ? "the first of them" : "this";
  return (
    <section aria-label="Whom it displaces" className="figures rounded-md bg-sunken px-3 py-2 text-sm">
      {count > 1 && (
        <p>
          {count} reservations, one a week, at the same times by the clocks of {zone}.
        </p>
      )}
      {forPerson && <p>Reserved for this person alone, even when idle.</p>}
      {displaced.length === 0 ? (
        <p>Nobody who holds a GPU now loses it for {which}.</p>
      ) : (
        <>
          <h3 className="font-medium">
            {forPerson ? "For" : "When the team takes all of"} {which}, these are taken back, with notice
          </h3>
          <ul className="mt-0.5 list-disc pl-4 text-ink-2">
            {displaced.map(({ who, teamName, milli }) => (
              <li key={`${teamName} ${who} ${milli}`}>
                {formatAmount(milli)} of {who} ({teamName}), if it still runs then
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}
