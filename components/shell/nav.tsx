"use client";

import { usePathname } from "next/navigation";
import { cx } from "#components/format.ts";
import { Link } from "#components/ui/link.tsx";
import type { Branch } from "./tree.ts";

/** The tree of pages; the page one is on is marked. */
export function Nav({ tree, onFollow }: { tree: Branch[]; onFollow?: () => void }) {
  const path = usePathname();
  return (
    <nav aria-label="Pages" className="flex flex-col gap-5">
      {tree.map((branch) => (
        <div key={branch.title}>
          <p className="px-2 pb-1 text-xs font-medium text-ink-2">{branch.title}</p>
          <ul className="flex flex-col gap-px">
            {branch.pages.map((page) => {
              const here = path === page.href || path.startsWith(`${page.href}/`);
              return (
                <li key={page.href}>
                  <Link
                    href={page.href}
                    onClick={onFollow}
                    aria-current={here ? "page" : undefined}
                    className={cx(
                      "block rounded-md px-2 py-1",
                      here ? "bg-accent-soft font-medium text-ink" : "text-ink-2 hover:bg-hover hover:text-ink",
                    )}
                  >
                    {page.label}
                  </Link>
                </li>
              );
            })}
          </ul>
        </div>
      ))}
    </nav>
  );
}
