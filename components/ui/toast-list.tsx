"use client";

import { X } from "lucide-react";
import { Toast as Radix } from "radix-ui";
import { cx } from "#components/format.ts";
import type { Note } from "./toast.tsx";

/** The messages that stand on the page; each goes by itself, or when it is closed. */
export default function ToastList({ notes, onGone }: { notes: Note[]; onGone: (id: number) => void }) {
  return (
    <Radix.Provider label="Message">
      {notes.map((note) => (
        <Radix.Root
          key={note.id}
          duration={note.tone === "bad" ? 20_000 : 6000}
          onOpenChange={(open) => {
            if (!open) onGone(note.id);
          }}
          className={cx(
            "flex items-start gap-3 rounded-lg border bg-raised px-3.5 py-2.5 shadow-lg",
            note.tone === "bad" ? "border-bad text-bad" : "border-line",
          )}
        >
          <Radix.Description className="min-w-0 grow">{note.text}</Radix.Description>
          <Radix.Close aria-label="Close message" className="mt-0.5 rounded-sm text-ink-2 hover:text-ink">
            <X aria-hidden="true" className="size-4" />
          </Radix.Close>
        </Radix.Root>
      ))}
      <Radix.Viewport className="fixed right-4 bottom-4 z-50 flex w-[calc(100vw-2rem)] max-w-sm flex-col gap-2" />
    </Radix.Provider>
  );
}
