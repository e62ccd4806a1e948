"use client";

import type { ButtonHTMLAttributes, ComponentProps, ReactNode } from "react";
import { cx } from "#components/format.ts";
import { useHydrated } from "#components/live/hydrated.ts";
import { Link } from "#components/ui/link.tsx";

type Variant = "primary" | "secondary" | "ghost" | "danger";
type Size = "sm" | "md";

const base =
  "relative inline-flex items-center justify-center gap-1.5 rounded-md font-medium whitespace-nowrap select-none overflow-hidden " +
  "motion-safe:transition-colors motion-safe:duration-100";
const off = "opacity-60 cursor-not-allowed";
const sizes: Record<Size, string> = { sm: "h-7 px-2.5 text-sm", md: "h-8 px-3 text-base" };
const variants: Record<Variant, string> = {
  primary: "bg-accent text-on-accent hover:bg-accent-hover",
  secondary: "bg-surface text-ink border border-line-strong hover:bg-hover",
  ghost: "text-ink hover:bg-hover",
  danger: "bg-bad-fill text-on-bad hover:brightness-90",
};

type Look = { variant?: Variant; size?: Size };

/**
 * A button; `pending` keeps it in place, says what is going on and refuses a second press. It takes no press before
 * the page can answer it: a form sent by the bare HTML would carry its fields in the address.
 */
export function Button({
  variant = "secondary",
  size = "md",
  pending = false,
  pendingLabel,
  children,
  className,
  disabled,
  type = "button",
  onClick,
  ...rest
}: ButtonHTMLAttributes<HTMLButtonElement> & Look & { pending?: boolean; pendingLabel?: ReactNode }) {
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
      className={cx(base, sizes[size], variants[variant], (disabled || pending) && off, className)}
    >
      {pending ? (pendingLabel ?? children) : children}
      {pending && <span aria-hidden="true" className="progress-line absolute inset-x-0 bottom-0 h-0.5" />}
    </button>
  );
}

/** A link that looks like a button: it goes somewhere, it does nothing. */
export function ButtonLink({
  variant = "secondary",
  size = "md",
  className,
  ...rest
}: ComponentProps<typeof Link> & Look) {
  return <Link {...rest} className={cx(base, sizes[size], variants[variant], className)} />;
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
