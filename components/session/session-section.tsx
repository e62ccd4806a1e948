"use client";

import { useRouter } from "next/navigation";
import { useState } from "react";
import { api } from "#components/api.ts";
import { Button } from "#components/ui/button.tsx";
import { type Column, DataTable } from "#components/ui/data-table.tsx";
import { Confirm } from "#components/ui/dialog.tsx";
import { Section } from "#components/ui/page.tsx";
import { RelativeTime } from "#components/ui/time.tsx";
import type { SessionView } from "#server/contracts/session.ts";
import { browserName } from "./browser-name.ts";
import { SignOutButton } from "./sign-out-button.tsx";

/** Where one is signed in; every session but this one can be ended from here. */
export function SessionSection({ sessions }: { sessions: SessionView[] }) {
  const router = useRouter();
  const [ending, setEnding] = useState<SessionView>();
  const columns: Column<SessionView>[] = [
    {
      id: "browser",
      header: "Browser",
      sort: (row) => browserName(row.userAgent),
      cell: (row) => (
        <span title={row.userAgent ?? undefined}>
          {browserName(row.userAgent)}
          {row.openedByAdmin && <span className="text-ink-2"> (opened by an admin)</span>}
        </span>
      ),
    },
    {
      id: "address",
      header: "From",
      from: "sm",
      sort: (row) => row.address ?? "",
      cell: (row) => row.address ?? <span className="text-ink-2">not known</span>,
    },
    {
      id: "made",
      header: "Signed in",
      align: "right",
      from: "sm",
      sort: (row) => row.createdAt,
      cell: (row) => <RelativeTime at={row.createdAt} />,
    },
    {
      id: "seen",
      header: "Last used",
      align: "right",
      sort: (row) => row.lastSeenAt ?? "",
      cell: (row) =>
        row.current ? (
          "now, here"
        ) : row.lastSeenAt ? (
          <RelativeTime at={row.lastSeenAt} />
        ) : (
          <span className="text-ink-2">not known</span>
        ),
    },
    {
      id: "end",
      header: "Sign out",
      quiet: true,
      align: "right",
      cell: (row) =>
        row.current ? (
          <SignOutButton />
        ) : (
          <Button
            size="sm"
            onClick={() => setEnding(row)}
            aria-label={`Sign out there: ${browserName(row.userAgent)}, signed in ${row.createdAt}`}
          >
            Sign out there
          </Button>
        ),
    },
  ];
  return (
    <Section
      title="Sign-in sessions"
      detail="Signing out closes workspaces that were opened in that browser. They keep running."
    >
      <DataTable caption="Sign-in sessions" rows={sessions} columns={columns} rowKey={(row) => row.id} />
      <Confirm
        open={ending !== undefined}
        onOpenChange={(open) => {
          if (!open) setEnding(undefined);
        }}
        title={`Sign out ${ending === undefined ? "" : browserName(ending.userAgent)}?`}
        loses="What was opened there is closed at once, and its next page asks to sign in. Workspaces go on running."
        confirmLabel="Sign out there"
        pendingLabel="Signing out"
        act={async () => {
          const result = await api("DELETE", `/sessions/${ending?.id}`);
          router.refresh();
          return result.ok ? undefined : result.error.message;
        }}
      />
    </Section>
  );
}
