import type { ReactNode } from "react";

/** What a page without rows says: what would be here, and what to do next. */
export function EmptyState({ title, children, action }: { title: string; children?: ReactNode; action?: ReactNode }) {
  return (
    <div className="flex flex-col items-start gap-2 rounded-lg border border-dashed border-line-strong px-5 py-6">
      <p className="font-medium">{title}</p>
      {children && <div className="max-w-prose text-ink-2 [&_code]:whitespace-nowrap">{children}</div>}
      {action && <div className="mt-1">{action}</div>}
    </div>
  );
}
