"use client";

import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import { type ReactNode, useLayoutEffect, useRef, useState } from "react";
import { cx } from "#components/format.ts";
import { Button, IconButton } from "./button.tsx";
import { Field, FormError } from "./field.tsx";
import { DialogEdits, useEdits } from "./unsaved.ts";

/**
 * A window above the page. Focus stays in it, Escape closes it, and goes back to where it was opened. With unsaved
 * changes Escape, the close button and a click beside it ask first; a form's own Cancel says what it does.
 */
export function Dialog({
  open,
  onOpenChange,
  title,
  description,
  children,
  wide,
  hasEdits = true,
}: {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  title: string;
  description?: ReactNode;
  children: ReactNode;
  wide?: boolean;
  /** Whether closing with unsaved input asks for confirmation. */
  hasEdits?: boolean;
}) {
  const edits = useEdits();
  const [asking, setAsking] = useState(false);
  if (asking && !open) setAsking(false);
  const change = (next: boolean) => {
    const asks = !next && hasEdits && edits.areUnsaved();
    // A second Escape answers the question like "Keep editing".
    setAsking(asks && !asking);
    if (!asks) onOpenChange(next);
  };
  const discard = () => {
    setAsking(false);
    onOpenChange(false);
  };
  // Radix knows the opener of its own triggers only, and tells of nothing where a field takes the focus for itself.
  const opener = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    if (open) opener.current = openerNow();
  }, [open]);
  return (
    <Radix.Root open={open} onOpenChange={change}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-scrim" />
        <Radix.Content
          {...(description ? {} : { "aria-describedby": undefined })}
          {...edits.listeners}
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
          <div className="mt-4">
            <DialogEdits value={edits.mark}>{children}</DialogEdits>
          </div>
          {asking && <AskToDiscard onKeep={() => setAsking(false)} onDiscard={discard} />}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

function AskToDiscard({ onKeep, onDiscard }: { onKeep: () => void; onDiscard: () => void }) {
  return (
    <div
      role="alert"
      className="sticky bottom-0 mt-4 flex flex-wrap items-center justify-between gap-2 rounded-md border border-line-strong bg-raised px-3 py-2"
    >
      <p className="font-medium">Discard your changes?</p>
      <div className="flex gap-2">
        <Button size="sm" autoFocus onClick={onKeep}>
          Keep editing
        </Button>
        <Button size="sm" variant="danger" onClick={onDiscard}>
          Discard
        </Button>
      </div>
    </div>
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
 * and the window stays open with it. `typed`: text to type first, for an act that cannot be undone.
 */
export function Confirm({
  open,
  onOpenChange,
  title,
  loses,
  confirmLabel,
  pendingLabel,
  dismissLabel = "Cancel",
  act,
  children,
  typed,
  danger = true,
}: {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  title: string;
  loses: ReactNode;
  confirmLabel: string;
  pendingLabel: string;
  /** Label instead of "Cancel", where the action itself cancels something. */
  dismissLabel?: string;
  act: () => Promise<string | undefined>;
  children?: ReactNode;
  typed?: string;
  danger?: boolean;
}) {
  const [written, setWritten] = useState("");
  const [pending, setPending] = useState(false);
  const [error, setError] = useState<string>();
  const isConfirmed = typed === undefined || written.trim() === typed;
  const close = () => {
    setError(undefined);
    setWritten("");
    onOpenChange(false);
  };
  const confirm = async () => {
    if (!isConfirmed) return;
    setPending(true);
    setError(undefined);
    const refused = await act();
    setPending(false);
    if (refused) setError(refused);
    else close();
  };
  return (
    <Dialog open={open} onOpenChange={close} title={title} description={loses} hasEdits={children !== undefined}>
      <form
        className="flex flex-col gap-4"
        onSubmit={(event) => {
          event.preventDefault();
          void confirm();
        }}
      >
        {children}
        {typed !== undefined && (
          <Field
            label={`Type "${typed}" to confirm`}
            autoComplete="off"
            spellCheck={false}
            value={written}
            onChange={(event) => setWritten(event.currentTarget.value)}
          />
        )}
        <FormError>{error}</FormError>
        <div className="flex flex-wrap justify-end gap-2">
          <Button onClick={close}>{dismissLabel}</Button>
          <Button
            type="submit"
            variant={danger ? "danger" : "primary"}
            disabled={!isConfirmed}
            pending={pending}
            pendingLabel={pendingLabel}
          >
            {confirmLabel}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
