"use client";

import { ChevronRight } from "lucide-react";
import type { ReactNode } from "react";
import { DownloadCsv } from "#components/ui/download-csv.tsx";
import { useOpened } from "#components/use-opened.ts";

/** The table behind a chart, and its file. The table is made when it is opened: most visits look at the chart. */
export function BehindChart({ csv, children }: { csv?: string; children: ReactNode }) {
  const { opened, watch } = useOpened();
  return (
    <details {...watch} className="group mt-2">
      <summary className="inline-flex items-center gap-0.5 text-sm text-ink-2 hover:text-ink">
        <ChevronRight aria-hidden="true" className="-ml-1 size-3.5 group-open:rotate-90" />
        Table
      </summary>
      {opened && (
        <div className="mt-2">
          {csv && (
            <p className="mb-2">
              <DownloadCsv href={csv} />
            </p>
          )}
          {children}
        </div>
      )}
    </details>
  );
}
