import { ChevronRight } from "lucide-react";
import type { ReactNode } from "react";

/** The table behind a chart, and its file. */
export function BehindChart({ csv, children }: { csv?: string; children: ReactNode }) {
  return (
    <details className="group mt-2">
      <summary className="inline-flex items-center gap-0.5 text-sm text-ink-2 hover:text-ink">
        <ChevronRight aria-hidden="true" className="-ml-1 size-3.5 group-open:rotate-90" />
        Table
      </summary>
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
    </details>
  );
}
