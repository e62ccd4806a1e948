"use client";

import { Command } from "cmdk";
import { useRouter } from "next/navigation";
import { useEffect, useState } from "react";
import { api } from "#components/api.ts";
import { Dialog } from "#components/ui/dialog.tsx";
import type { WorkspaceList } from "#server/contracts/workspace.ts";
import { type Destination, found, stillFound } from "./destinations.ts";

const MOST_WORKSPACES = 8;
const TYPING_MS = 150;

/** The list behind Ctrl-K: workspaces that the server finds, then pages and teams; Enter goes there. */
export default function CommandList({ destinations, onClose }: { destinations: Destination[]; onClose: () => void }) {
  const router = useRouter();
  const [search, setSearch] = useState("");
  const workspaces = useWorkspaces(search);
  const all = [...workspaces, ...found(destinations, search)];
  const groups = Map.groupBy(all, ({ group }) => group);
  const go = (href: string) => {
    onClose();
    router.push(href);
  };
  return (
    <Dialog open onOpenChange={onClose} title="Go to" hasEdits={false}>
      <Command label="Go to" shouldFilter={false} loop>
        <Command.Input
          autoFocus
          value={search}
          onValueChange={setSearch}
          placeholder="A page, a workspace, a team"
          maxLength={100}
          className="h-9 w-full rounded-md border border-line-strong bg-surface px-2.5 placeholder:text-ink-2"
        />
        <Command.List className="mt-3 max-h-80 overflow-y-auto">
          <Command.Empty className="px-2.5 py-1.5 text-ink-2">Nothing has this name.</Command.Empty>
          {[...groups].map(([group, entries]) => (
            <Command.Group
              key={group}
              heading={group}
              className="mb-2 [&_[cmdk-group-heading]]:px-2.5 [&_[cmdk-group-heading]]:text-sm [&_[cmdk-group-heading]]:text-ink-2"
            >
              {entries.map(({ href, label }) => (
                <Command.Item
                  key={href}
                  value={href}
                  onSelect={() => go(href)}
                  className="cursor-pointer rounded-md px-2.5 py-1.5 data-[selected=true]:bg-accent-soft"
                >
                  {label}
                </Command.Item>
              ))}
            </Command.Group>
          ))}
        </Command.List>
      </Command>
    </Dialog>
  );
}

/** One's own workspaces that have the words, a moment after typing ends; none while they cannot be read. */
function useWorkspaces(search: string): Destination[] {
  const [answer, setAnswer] = useState<{ search: string; list: Destination[] }>({ search: "", list: [] });
  useEffect(() => {
    let current = true;
    const ask = async () => {
      const asked = new URLSearchParams({ limit: String(MOST_WORKSPACES), search: search.slice(0, 100) });
      const read = await api<WorkspaceList>("GET", `/workspaces?${asked.toString()}`);
      if (!current) return;
      const workspaces = read.ok ? read.data.workspaces : [];
      const list = workspaces.map(({ id, name }) => ({ href: `/workspaces/${id}`, label: name, group: "Workspaces" }));
      setAnswer({ search, list });
    };
    const timer = setTimeout(() => void ask(), TYPING_MS);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [search]);
  return stillFound(answer, search);
}
