import { formatExact, plural } from "#components/format.ts";
import { clockIn } from "#server/contracts/time-zone.ts";
import type { WorkspaceEvent } from "#server/contracts/workspace.ts";

/** Steps and lines start by start, the newest start first; `zone` is the person's. */
export function WorkspaceLog({ events, zone }: { events: WorkspaceEvent[]; zone: string }) {
  const starts = new Map<number, WorkspaceEvent[]>();
  for (const event of events) starts.set(event.generation, [...(starts.get(event.generation) ?? []), event]);
  const newest = Math.max(...starts.keys());
  return [...starts.entries()]
    .sort(([a], [b]) => b - a)
    .map(([generation, lines]) => (
      <details key={generation} open={generation === newest} className="mb-3 rounded-lg border border-line bg-surface">
        <summary className="px-3.5 py-2 font-medium">
          Start {generation}
          <span className="figures ml-2 text-sm font-normal text-ink-2">
            {lines[0] && formatExact(lines[0].at, zone)}, {plural(lines.length, "line")}
          </span>
        </summary>
        <div
          // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
          tabIndex={0}
          role="log"
          aria-label={`Log of start ${generation}`}
          // Reversed, so that the newest line is in sight, and stays so unless somebody scrolls up.
          className="flex max-h-[36rem] flex-col-reverse overflow-auto border-t border-line px-3.5 py-2.5"
        >
          <ol className="font-mono text-xs leading-5">
            {lines.map((line) => (
              <li
                key={line.seq}
                className="grid grid-cols-[5.5rem_7rem_minmax(20rem,1fr)] gap-x-2 max-sm:grid-cols-[5.5rem_minmax(14rem,1fr)]"
              >
                <time dateTime={line.at} title={formatExact(line.at, zone)} className="text-ink-2">
                  {clockIn(zone, Date.parse(line.at)).slice(11)}
                </time>
                <span className="text-ink-2 max-sm:hidden">{line.step}</span>
                <span
                  className={
                    line.kind === "step-failed"
                      ? "break-words text-bad"
                      : line.kind === "log"
                        ? "break-words"
                        : "font-medium break-words"
                  }
                >
                  {line.message}
                  {line.kind === "step-done" && <span className="text-ok"> ✓ done</span>}
                  {line.kind === "step-started" && <span className="text-ink-2"> …</span>}
                </span>
              </li>
            ))}
          </ol>
        </div>
      </details>
    ));
}
