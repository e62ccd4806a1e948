"use client";

import type { ButtonHTMLAttributes, ReactNode } from "react";
import { cx } from "#components/format.ts";
import { useHydrated } from "#components/live/hydrated.ts";
import { type ButtonLook, buttonClasses } from "#components/ui/button-look.ts";

const off = "opacity-60 cursor-not-allowed";

/**
 * A button; `pending` keeps it in place, says what is going on and refuses a second press. It takes no press before
 * the page can answer it: a form sent by the bare HTML would carry its fields in the address.
 */
export function Button({
  variant,
  size,
  pending = false,
  pendingLabel,
  children,
  className,
  disabled,
  type = "button",
  onClick,
  ...rest
}: ButtonHTMLAttributes<HTMLButtonElement> & ButtonLook & { pending?: boolean; pendingLabel?: ReactNode }) {
  const hydrated = useHydrated();
  return (
    <button
      {...rest}
      type={type}
      disabled={disabled || !hydrated}
      // One that is disabled would lose the focus, and whoever goes on by the keyboard their place.
      aria-disabled={pending || undefined}
      aria-busy={pending || undefined}
      onClick={pending ? (event) => event.preventDefault() : onClick}
      className={cx(buttonClasses({ variant, size }), (disabled || pending) && off, className)}
    >
      {pending ? (pendingLabel ?? children) : children}
      {pending && <span aria-hidden="true" className="progress-line absolute inset-x-0 bottom-0 h-0.5" />}
    </button>
  );
}

/** A square button with a picture only; `label` is its name. */
export function IconButton({
  label,
  children,
  className,
  disabled,
  ...rest
}: ButtonHTMLAttributes<HTMLButtonElement> & { label: string }) {
  const hydrated = useHydrated();
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      {...rest}
      disabled={disabled || !hydrated}
      className={cx(
        "inline-flex size-8 items-center justify-center rounded-md text-ink-2 hover:bg-hover hover:text-ink",
        className,
      )}
    >
      {children}
    </button>
  );
}
