"use client";

import {
  type InputHTMLAttributes,
  type ReactNode,
  type SelectHTMLAttributes,
  type TextareaHTMLAttributes,
  useId,
  useState,
} from "react";
import { cx } from "#components/format.ts";

const control =
  "w-full rounded-md border border-line-strong bg-surface px-2.5 text-base text-ink placeholder:text-ink-2 " +
  "hover:border-ink-2 aria-invalid:border-bad disabled:bg-sunken disabled:text-ink-2";

type Shell = { label: string; hint?: ReactNode; error?: string | undefined; className?: string };

function Frame({ id, label, hint, error, className, children }: Shell & { id: string; children: ReactNode }) {
  return (
    <div className={cx("flex flex-col gap-1", className)}>
      <label htmlFor={id} className="text-sm font-medium">
        {label}
      </label>
      {children}
      {hint && (
        <p id={`${id}-hint`} className="text-sm text-ink-2">
          {hint}
        </p>
      )}
      <p
        id={`${id}-error`}
        aria-live="polite"
        className={cx("text-sm break-words whitespace-pre-line text-bad", !error && "hidden")}
      >
        {error}
      </p>
    </div>
  );
}

/** The server's error for a field, until the field is edited. */
function useErrorUntilEdited(error: string | undefined) {
  const [corrected, setCorrected] = useState<string>();
  // Sent again, the form has no errors for a moment: the same sentence then counts anew.
  if (error === undefined && corrected !== undefined) setCorrected(undefined);
  return { shown: error === corrected ? undefined : error, correct: () => setCorrected(error) };
}

function described(id: string, hint: unknown, error: unknown): string | undefined {
  return [hint ? `${id}-hint` : null, error ? `${id}-error` : null].filter(Boolean).join(" ") || undefined;
}

/** A labelled text input with a hint below and the server's sentence beside it when it was refused. */
export function Field({
  label,
  hint,
  error,
  className,
  suffix,
  onInput,
  ...rest
}: InputHTMLAttributes<HTMLInputElement> & Shell & { suffix?: string }) {
  const id = useId();
  const { shown, correct } = useErrorUntilEdited(error);
  return (
    <Frame id={id} label={label} hint={hint} error={shown} className={className}>
      <div className="relative">
        <input
          {...rest}
          id={id}
          onInput={(event) => {
            correct();
            onInput?.(event);
          }}
          aria-invalid={shown ? true : undefined}
          aria-describedby={described(id, hint, shown)}
          className={cx(control, "h-9", suffix && "pr-14")}
        />
        {suffix && (
          <span className="pointer-events-none absolute inset-y-0 right-2.5 flex items-center text-sm text-ink-2">
            {suffix}
          </span>
        )}
      </div>
    </Frame>
  );
}

/** A labelled choice; the browser's own list, which works on every device and with every reader. */
export function Select({
  label,
  hint,
  error,
  className,
  children,
  onInput,
  ...rest
}: SelectHTMLAttributes<HTMLSelectElement> & Shell) {
  const id = useId();
  const { shown, correct } = useErrorUntilEdited(error);
  return (
    <Frame id={id} label={label} hint={hint} error={shown} className={className}>
      <select
        {...rest}
        id={id}
        onInput={(event) => {
          correct();
          onInput?.(event);
        }}
        aria-invalid={shown ? true : undefined}
        aria-describedby={described(id, hint, shown)}
        className={cx(control, "h-9 pr-1")}
      >
        {children}
      </select>
    </Frame>
  );
}

/** A labelled text of several lines. */
export function TextArea({
  label,
  hint,
  error,
  className,
  onInput,
  ...rest
}: TextareaHTMLAttributes<HTMLTextAreaElement> & Shell) {
  const id = useId();
  const { shown, correct } = useErrorUntilEdited(error);
  return (
    <Frame id={id} label={label} hint={hint} error={shown} className={className}>
      <textarea
        rows={2}
        {...rest}
        id={id}
        onInput={(event) => {
          correct();
          onInput?.(event);
        }}
        aria-invalid={shown ? true : undefined}
        aria-describedby={described(id, hint, shown)}
        className={cx(control, "py-1.5")}
      />
    </Frame>
  );
}

/** A labelled yes or no, with what it means below. */
export function Check({
  label,
  hint,
  ...rest
}: Omit<InputHTMLAttributes<HTMLInputElement>, "type" | "className"> & { label: ReactNode; hint?: ReactNode }) {
  const id = useId();
  return (
    <div className="flex items-start gap-2">
      <input
        {...rest}
        id={id}
        type="checkbox"
        aria-describedby={hint ? `${id}-hint` : undefined}
        className="mt-1 size-4 shrink-0 accent-accent"
      />
      <div className="min-w-0">
        <label htmlFor={id} className={rest.disabled ? "text-ink-2" : undefined}>
          {label}
        </label>
        {hint && (
          <p id={`${id}-hint`} className="text-sm text-ink-2">
            {hint}
          </p>
        )}
      </div>
    </div>
  );
}

/** What the server said when no single field is to blame. */
export function FormError({ children }: { children?: ReactNode }) {
  return (
    <p role="alert" className={cx("rounded-md bg-bad-soft px-3 py-2 text-sm text-bad", !children && "hidden")}>
      {children}
    </p>
  );
}
