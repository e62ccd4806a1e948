import { LiveRefresh } from "#components/live/live.tsx";
import { PageHeader } from "#components/ui/page.tsx";
import { State, type Tone } from "#components/ui/state.tsx";
import { RelativeTime } from "#components/ui/time.tsx";
import type { Component } from "#server/contracts/health.ts";
import { read } from "#server/services/health/read.ts";
import { load, pageContext } from "../../page-context.ts";

export const metadata = { title: "Health" };

const tones: Record<Component["state"], Tone> = { ok: "ok", warning: "warn", down: "bad" };

/** Every part of the installation: what is wrong first, each with its next step. */
export default async function HealthPage() {
  const ctx = await pageContext();
  const { components } = await load(() => read(ctx));
  const wrong = components.filter((each) => each.state !== "ok").length;
  return (
    <>
      <LiveRefresh topics={["health", "pool", "usage"]} />
      <PageHeader
        title="Health"
        detail={wrong === 0 ? "Everything works." : `${wrong} of ${components.length} parts need a look.`}
      />
      <ul className="divide-y divide-line rounded-lg border border-line bg-surface">
        {components.map((each) => (
          <li
            key={`${each.kind}/${each.name}`}
            className="grid gap-x-6 gap-y-0.5 px-3.5 py-2.5 sm:grid-cols-[12rem_7rem_minmax(0,1fr)_auto]"
          >
            <span className="font-medium wrap-anywhere">{each.name}</span>
            <State tone={tones[each.state]} className="self-start">
              {each.state}
            </State>
            <div className="min-w-0">
              <p className="wrap-anywhere">{each.detail}</p>
              {each.next && <p className="text-sm text-ink-2">{each.next}</p>}
            </div>
            <span className="text-sm text-ink-2">
              {each.version && <span className="figures">{each.version}, </span>}
              {each.seenAt ? <RelativeTime at={each.seenAt} /> : "not seen"}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}
