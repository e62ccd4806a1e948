"use client";

import { Search } from "lucide-react";
import { lazy, Suspense, useEffect, useState } from "react";
import { IconButton } from "#components/ui/button.tsx";
import type { Destination } from "./destinations.ts";

const CommandList = lazy(() => import("./command-list.tsx"));

/** Ctrl-K (⌘K): goes to any page, workspace or team by a few letters. What it needs is loaded when it is opened. */
export function CommandMenu({ destinations }: { destinations: Destination[] }) {
  const [open, setOpen] = useState(false);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey)
        return;
      event.preventDefault();
      setOpen((was) => !was);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  return (
    <>
      <IconButton label="Go to (Ctrl-K)" aria-keyshortcuts="Control+K Meta+K" onClick={() => setOpen(true)}>
        <Search aria-hidden="true" className="size-4" />
      </IconButton>
      {open && (
        <Suspense>
          <CommandList destinations={destinations} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}
