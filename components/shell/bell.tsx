"use client";

import { Bell as BellIcon } from "lucide-react";
import { Popover } from "radix-ui";
import { useEffect, useRef, useState } from "react";
import { api } from "#components/api.ts";
import { cx, plural } from "#components/format.ts";
import { useNow } from "#components/live/now.ts";
import { Button, IconButton } from "#components/ui/button.tsx";
import { Link } from "#components/ui/link.tsx";
import { RelativeTime, Remaining } from "#components/ui/time.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { NoticeView } from "#server/contracts/notice.ts";
import { freshNotices } from "./fresh-notices.ts";
import { useGlance } from "./live-glance.tsx";

/** What one was told: how much of it is unread, the newest, and a toast when something is new. */
export function Bell() {
  const { glance, reread } = useGlance();
  const { notices, unread } = glance;
  const toast = useToast();
  const [open, setOpen] = useState(false);
  const seen = useRef<string | undefined>(undefined);
  useEffect(() => {
    // What was there when the page was opened is the bell's alone.
    if (seen.current !== undefined) for (const { title } of freshNotices(notices, seen.current)) toast(title);
    seen.current = notices[0]?.id ?? seen.current ?? "";
  }, [notices, toast]);
  const read = async (ids?: string[]) => {
    await api("POST", "/notices/read", ids === undefined ? {} : { ids });
    await reread();
  };
  return (
    <Popover.Root open={open} onOpenChange={setOpen}>
      <Popover.Trigger asChild>
        <IconButton label={unread === 0 ? "Notices" : `Notices, ${unread} unread`} className="relative">
          <BellIcon aria-hidden="true" className="size-4" />
          {unread > 0 && (
            <span
              aria-hidden="true"
              className="figures absolute top-0 right-0 min-w-4 rounded-full bg-bad-fill px-1 text-center text-[0.6875rem] leading-4 font-medium text-on-bad"
            >
              {unread > 99 ? "99+" : unread}
            </span>
          )}
        </IconButton>
      </Popover.Trigger>
      <Popover.Content
        align="end"
        sideOffset={6}
        collisionPadding={8}
        aria-label="Notices"
        className="z-50 flex max-h-[min(32rem,80dvh)] w-[min(24rem,calc(100vw-1rem))] flex-col rounded-lg border border-line bg-raised shadow-lg"
      >
        <div className="flex min-h-11 items-center justify-between gap-3 border-b border-line px-3.5 py-1.5">
          <h2 className="font-medium">Notices</h2>
          {unread > 0 && (
            <Button size="sm" variant="ghost" onClick={() => void read()}>
              Mark {plural(unread, "notice")} as read
            </Button>
          )}
        </div>
        {notices.length === 0 ? (
          <p className="px-3.5 py-4 text-ink-2">
            Nothing yet. Here you are told when a GPU is about to be taken back or idles, when your turn has come, and
            how far a budget has been used.
          </p>
        ) : (
          <ul className="overflow-y-auto py-1">
            {notices.map((notice) => (
              <Item
                key={notice.id}
                notice={notice}
                onFollow={() => {
                  setOpen(false);
                  if (notice.readAt === null) void read([notice.id]);
                }}
              />
            ))}
          </ul>
        )}
      </Popover.Content>
    </Popover.Root>
  );
}

function Item({ notice, onFollow }: { notice: NoticeView; onFollow: () => void }) {
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
