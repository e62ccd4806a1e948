"use client";

import { createContext, type ReactNode, useContext } from "react";

const MeContext = createContext("");

/** Says to what is below who looks at it. */
export function Me({ id, children }: { id: string; children: ReactNode }) {
  return <MeContext value={id}>{children}</MeContext>;
}

/** Whether somebody is the one who looks. */
export function useIsMe(userId: string): boolean {
  return useContext(MeContext) === userId;
}
