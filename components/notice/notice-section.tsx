"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { plural } from "#components/format.ts";
import { Button } from "#components/ui/button.tsx";
import { useToast } from "#components/ui/toast.tsx";
import type { NoticeView } from "#server/contracts/notice.ts";
import { NoticeItem } from "./notice-item.tsx";

/** Notices of a page; who follows one has read it. */
export function NoticeSection({ notices }: { notices: NoticeView[] }) {
  return (
    <ul className="max-w-3xl divide-y divide-line rounded-lg border border-line bg-surface">
      {notices.map((notice) => (
        <NoticeItem
          key={notice.id}
          notice={notice}
          onFollow={() => {
            if (notice.readAt === null) void api("POST", "/notices/read", { ids: [notice.id] });
          }}
        />
      ))}
    </ul>
  );
}

/** Marks all of one's notices as read, on whichever page they stand. */
export function MarkAllRead({ unread }: { unread: number }) {
  const router = useRouter();
  const toast = useToast();
  const [pending, setPending] = useState(false);
  const mark = async () => {
    setPending(true);
    const result = await api("POST", "/notices/read", {});
    setPending(false);
    if (!result.ok) toast(result.error.message, "bad");
    router.refresh();
  };
  return (
    <Button pending={pending} pendingLabel="Marking" onClick={() => void mark()} disabled={unread === 0}>
      {unread === 0 ? "All are read" : `Mark ${plural(unread, "notice")} as read`}
    </Button>
  );
}
