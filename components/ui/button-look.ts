import { cx } from "#components/format.ts";

type Variant = "primary" | "secondary" | "ghost" | "danger";
type Size = "sm" | "md";

const base =
  "relative inline-flex items-center justify-center gap-1.5 rounded-md font-medium whitespace-nowrap select-none overflow-hidden " +
  "motion-safe:transition-colors motion-safe:duration-100";
const sizes: Record<Size, string> = { sm: "h-7 px-2.5 text-sm", md: "h-8 px-3 text-base" };
const variants: Record<Variant, string> = {
  primary: "bg-accent text-on-accent hover:bg-accent-hover",
  secondary: "bg-surface text-ink border border-line-strong hover:bg-hover",
  ghost: "text-ink hover:bg-hover",
  danger: "bg-bad-fill text-on-bad hover:brightness-90",
};

/** How a button looks, and a link that looks like one. */
export type ButtonLook = { variant?: Variant; size?: Size };

export function buttonClasses({ variant = "secondary", size = "md" }: ButtonLook): string {
  return cx(base, sizes[size], variants[variant]);
}
