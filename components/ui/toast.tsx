"use client";

import { X } from "lucide-react";
import { Toast as Radix } from "radix-ui";
import { createContext, type ReactNode, useCallback, useContext, useMemo, useState } from "react";
import { cx } from "#components/format.ts";

type Note = { id: number; text: string; tone: "ok" | "bad" };

const Context = createContext<(text: string, tone?: Note["tone"]) => void>(() => {});

/** Says that something done on this page has happened, without taking the focus. */
export const useToast = () => useContext(Context);

let last = 0;

export function ToastProvider({ children }: { children: ReactNode }) {
  const [notes, setNotes] = useState<Note[]>([]);
  const show = useCallback((text: string, tone: Note["tone"] = "ok") => {
    last += 1;
    const id = last;
    setNotes((before) => [...before.slice(-2), { id, text, tone }]);
  }, []);
  const value = useMemo(() => show, [show]);
  return (
    <Context.Provider value={value}>
      <Radix.Provider label="Message">
        {children}
        {notes.map((note) => (
          <Radix.Root
            key={note.id}
            duration={note.tone === "bad" ? 20_000 : 6000}
            onOpenChange={(open) => {
              if (!open) setNotes((before) => before.filter((other) => other.id !== note.id));
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
    </Context.Provider>
  );
}
