"use client";

import { Menu, X } from "lucide-react";
import { Dialog } from "radix-ui";
import { useState } from "react";
import { IconButton } from "#components/ui/button.tsx";
import { Mark } from "./mark.tsx";
import { Nav } from "./nav.tsx";
import type { Branch } from "./tree.ts";

/** The tree behind a button, on narrow screens. */
export function MobileNav({ tree }: { tree: Branch[] }) {
  const [open, setOpen] = useState(false);
  return (
    <Dialog.Root open={open} onOpenChange={setOpen}>
      <Dialog.Trigger asChild>
        <IconButton label="Pages" className="lg:hidden">
          <Menu aria-hidden="true" className="size-5" />
        </IconButton>
      </Dialog.Trigger>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-scrim" />
        <Dialog.Content
          aria-describedby={undefined}
          className="fixed inset-y-0 left-0 z-50 w-72 max-w-[85vw] overflow-y-auto border-r border-line bg-raised p-4"
        >
          <div className="mb-5 flex items-center justify-between">
            <Dialog.Title>
              <Mark />
            </Dialog.Title>
            <Dialog.Close asChild>
              <IconButton label="Close">
                <X aria-hidden="true" className="size-4" />
              </IconButton>
            </Dialog.Close>
          </div>
          <Nav tree={tree} onFollow={() => setOpen(false)} />
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
