"use client";

import { Bell as BellIcon } from "lucide-react";
import { Popover } from "radix-ui";
import { useEffect, useRef, useState } from "react";
import { api } from "#components/api.ts";
import { plural } from "#components/format.ts";
import { NoticeItem } from "#components/notice/notice-item.tsx";
import { Button, IconButton } from "#components/ui/button.tsx";
import { Link } from "#components/ui/link.tsx";
import { useToast } from "#components/ui/toast.tsx";
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
              <NoticeItem
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
        <p className="border-t border-line px-3.5 py-2">
          <Link href="/notices" onClick={() => setOpen(false)} className="underline underline-offset-4">
            All notices
          </Link>
        </p>
      </Popover.Content>
    </Popover.Root>
  );
}
