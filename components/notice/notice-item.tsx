"use client";

import { cx } from "#components/format.ts";
import { useNow } from "#components/live/now.ts";
import { Link } from "#components/ui/link.tsx";
import { RelativeTime, Remaining } from "#components/ui/time.tsx";
import type { NoticeView } from "#server/contracts/notice.ts";

/** A notice in a list: whether it is unread, what it says, since when, and the way to what it is about. */
export function NoticeItem({ notice, onFollow }: { notice: NoticeView; onFollow: () => void }) {
  const { title, body, href, createdAt, dueAt, readAt } = notice;
  return (
    <li>
      <Link href={href} onClick={onFollow} className="flex gap-2.5 px-3.5 py-2 hover:bg-hover">
        <span
          aria-hidden="true"
          className={cx("mt-1.5 size-2 shrink-0 rounded-full", readAt === null ? "bg-accent" : "bg-transparent")}
        />
        <span className="min-w-0 grow">
          <span className={cx("block", readAt === null && "font-medium")}>
            {readAt === null && <span className="sr-only">Unread: </span>}
            {title}
          </span>
          <span className="block text-sm text-ink-2">{body}</span>
          <span className="mt-0.5 block text-sm text-ink-2">
            <RelativeTime at={createdAt} />
            <Due at={dueAt} kind={notice.kind} />
          </span>
        </span>
      </Link>
    </li>
  );
}

/** How long until what a notice announces, while it lies ahead. */
function Due({ at, kind }: { at: string | null; kind: NoticeView["kind"] }) {
  const now = useNow();
  if (at === null || Date.parse(at) <= now) return null;
  return (
    <span suppressHydrationWarning>
      , {kind === "budget" ? "spent in" : "in"} <Remaining until={at} />
    </span>
  );
}
