"use client";

import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import { type ReactNode, useLayoutEffect, useRef, useState } from "react";
import { cx } from "#components/format.ts";
import { Button, IconButton } from "./button.tsx";
import { FormError } from "./field.tsx";

/** A window above the page. Focus stays in it, Escape closes it, and goes back to where it was opened. */
export function Dialog({
  open,
  onOpenChange,
  title,
  description,
  children,
  wide,
}: {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  title: string;
  description?: ReactNode;
  children: ReactNode;
  wide?: boolean;
}) {
  // Radix knows the opener of its own triggers only, and tells of nothing where a field takes the focus for itself.
  const opener = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    if (open) opener.current = openerNow();
  }, [open]);
  return (
    <Radix.Root open={open} onOpenChange={onOpenChange}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-scrim" />
        <Radix.Content
          {...(description ? {} : { "aria-describedby": undefined })}
          onCloseAutoFocus={(event) => {
            event.preventDefault();
            opener.current?.focus();
          }}
          className={cx(
            "fixed top-1/2 left-1/2 z-50 max-h-[calc(100dvh-2rem)] w-[calc(100vw-2rem)] -translate-x-1/2 -translate-y-1/2",
            "overflow-y-auto rounded-lg border border-line bg-raised p-5 shadow-xl",
            wide ? "max-w-2xl" : "max-w-md",
          )}
        >
          <div className="flex items-start justify-between gap-4">
            <Radix.Title className="text-lg font-semibold">{title}</Radix.Title>
            <Radix.Close asChild>
              <IconButton label="Close" className="-mt-1 -mr-2">
                <X aria-hidden="true" className="size-4" />
              </IconButton>
            </Radix.Close>
          </div>
          {description && (
            <Radix.Description asChild>
              <div className="mt-1 text-base text-ink-2">{description}</div>
            </Radix.Description>
          )}
          <div className="mt-4">{children}</div>
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

/** What has the focus; of an item of a menu, which is about to go, the button of the menu. */
function openerNow(): HTMLElement | null {
  const { activeElement } = document;
  const button = activeElement?.closest("[role=menu]")?.getAttribute("aria-labelledby");
  const opener = button ? document.getElementById(button) : activeElement;
  return opener instanceof HTMLElement ? opener : null;
}

/**
 * Asks before something is lost: `loses` names it. `act` returns the server's sentence when it was refused,
 * and the window stays open with it.
 */
export function Confirm({
  open,
  onOpenChange,
  title,
  loses,
  confirmLabel,
  pendingLabel,
  act,
  children,
  danger = true,
}: {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  title: string;
  loses: ReactNode;
  confirmLabel: string;
  pendingLabel: string;
  act: () => Promise<string | undefined>;
  children?: ReactNode;
  danger?: boolean;
}) {
  const [pending, setPending] = useState(false);
  const [error, setError] = useState<string>();
  const confirm = async () => {
    setPending(true);
    setError(undefined);
    const refused = await act();
    setPending(false);
    if (refused) setError(refused);
    else onOpenChange(false);
  };
  return (
    <Dialog
      open={open}
      onOpenChange={(next) => {
        setError(undefined);
        onOpenChange(next);
      }}
      title={title}
      description={loses}
    >
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          void confirm();
        }}
      >
        {children}
        <FormError>{error}</FormError>
        <div className="flex flex-wrap justify-end gap-2">
          <Button onClick={() => onOpenChange(false)}>Cancel</Button>
          <Button type="submit" variant={danger ? "danger" : "primary"} pending={pending} pendingLabel={pendingLabel}>
            {confirmLabel}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
