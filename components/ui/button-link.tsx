import type { ComponentProps } from "react";
import { cx } from "#components/format.ts";
import { type ButtonLook, buttonClasses } from "#components/ui/button-look.ts";
import { Link } from "#components/ui/link.tsx";

/** A link that looks like a button: it goes somewhere, it does nothing. */
export function ButtonLink({ variant, size, className, ...rest }: ComponentProps<typeof Link> & ButtonLook) {
  return <Link {...rest} className={cx(buttonClasses({ variant, size }), className)} />;
}
