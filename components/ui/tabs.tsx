"use client";

import { cx } from "#components/format.ts";
import { Link } from "#components/ui/link.tsx";

/** Parts of one page, each with an address of its own. */
export function TabLinks({
  label,
  current,
  tabs,
}: {
  label: string;
  current: string;
  tabs: { id: string; label: string; href: string }[];
}) {
  return (
    <nav aria-label={label} className="mb-5 overflow-x-auto border-b border-line">
      <ul className="flex gap-1">
        {tabs.map((tab) => (
          <li key={tab.id}>
            <Link
              href={tab.href}
              scroll={false}
              aria-current={tab.id === current ? "page" : undefined}
              className={cx(
                "-mb-px inline-block border-b-2 px-2.5 py-1.5 whitespace-nowrap outline-offset-[-2px]",
                tab.id === current
                  ? "border-accent font-medium text-ink"
                  : "border-transparent text-ink-2 hover:border-line-strong hover:text-ink",
              )}
            >
              {tab.label}
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
}
