"use client";

import { LiftStop } from "#components/stop/lift-stop.tsx";
import type { Me } from "#server/contracts/session.ts";
import { useGlance } from "./live-glance.tsx";
import { whoIsStopped } from "./who-is-stopped.ts";

/** Why nothing is granted just now: the stop switches that bind this person; an admin sees all of them. */
export function StopBanner({ person }: { person: Pick<Me, "id" | "isAdmin" | "teams"> }) {
  const { stops } = useGlance().glance;
  const shown = stops.flatMap((stop) => {
    const who = whoIsStopped(stop, person);
    return who === undefined ? [] : [{ ...stop, who }];
  });
  if (shown.length === 0) return null;
  return (
    <div role="status" className="border-b border-line bg-warn-soft px-4 py-1.5 text-sm text-warn">
      {shown.map(({ id, who, reason }) => (
        <div key={id} className="flex flex-wrap items-center gap-x-4 gap-y-1">
          <p>
            <strong className="font-medium">No new GPUs for {who}:</strong> {reason} Who waits keeps the place.
          </p>
          {person.isAdmin && <LiftStop id={id} who={who} />}
        </div>
      ))}
    </div>
  );
}
