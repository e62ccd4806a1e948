"use client";

import { ChevronRight } from "lucide-react";
import { type ReactNode, useState } from "react";

/** The table behind a chart, and its file. The table is made when it is opened: most visits look at the chart. */
export function BehindChart({ csv, children }: { csv?: string; children: ReactNode }) {
  const [opened, setOpened] = useState(false);
  const look = (details: HTMLDetailsElement | null) => {
    if (details?.open) setOpened(true);
  };
  return (
    // It may have been opened before the page could hear of it: hence the ref.
    <details ref={look} onToggle={(event) => look(event.currentTarget)} className="group mt-2">
      <summary className="inline-flex items-center gap-0.5 text-sm text-ink-2 hover:text-ink">
        <ChevronRight aria-hidden="true" className="-ml-1 size-3.5 group-open:rotate-90" />
        Table
      </summary>
      {opened && (
        <div className="mt-2">
          {csv && (
            <p className="mb-2 text-sm">
              <a href={csv} download className="text-accent underline underline-offset-4">
                Download as CSV
              </a>
            </p>
          )}
          {children}
        </div>
      )}
    </details>
  );
}
