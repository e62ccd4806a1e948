"use client";

import { createContext, lazy, type ReactNode, Suspense, useCallback, useContext, useState } from "react";

export type Note = { id: number; text: string; tone: "ok" | "bad" };

/** Loaded with the first message: most visits have none. */
const ToastList = lazy(() => import("./toast-list.tsx"));

const Context = createContext<(text: string, tone?: Note["tone"]) => void>(() => {});

/** Says that something done on this page has happened, without taking the focus. */
export const useToast = () => useContext(Context);

let last = 0;

export function ToastProvider({ children }: { children: ReactNode }) {
  const [notes, setNotes] = useState<Note[]>([]);
  const [begun, setBegun] = useState(false);
  const show = useCallback((text: string, tone: Note["tone"] = "ok") => {
    last += 1;
    const id = last;
    setNotes((before) => [...before.slice(-2), { id, text, tone }]);
    setBegun(true);
  }, []);
  const forget = useCallback((id: number) => setNotes((before) => before.filter((other) => other.id !== id)), []);
  return (
    <Context.Provider value={show}>
      {children}
      {begun && (
        <Suspense>
          <ToastList notes={notes} onGone={forget} />
        </Suspense>
      )}
    </Context.Provider>
  );
}
