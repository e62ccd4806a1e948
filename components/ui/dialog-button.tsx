"use client";

import { type ReactNode, Suspense, useCallback, useState } from "react";
import { Button } from "./button.tsx";

/**
 * A button that opens a dialog. The dialog is made when it is opened and begins anew each time, so it can be `lazy`: a
 * page does not load the forms that nobody opens.
 */
export function DialogButton({
  children,
  dialog,
  initiallyOpen = false,
  ...look
}: {
  children: ReactNode;
  dialog: (close: () => void) => ReactNode;
  initiallyOpen?: boolean;
  size?: "sm" | "md";
  variant?: "primary" | "secondary";
  disabled?: boolean;
  "aria-label"?: string;
}) {
  const [open, setOpen] = useState(initiallyOpen);
  const close = useCallback(() => setOpen(false), []);
  return (
    <>
      <Button {...look} onClick={() => setOpen(true)}>
        {children}
      </Button>
      {open && <Suspense>{dialog(close)}</Suspense>}
    </>
  );
}
