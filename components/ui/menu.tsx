"use client";

import { DropdownMenu, Slot } from "radix-ui";
import type { ReactNode } from "react";
import { cx } from "#components/format.ts";
import { useHydrated } from "#components/live/hydrated.ts";

/**
 * A list of actions that opens under its trigger, and stays inside the same landmark of the page. Before the page answers
 * to clicks the trigger stands alone, and says already what it opens: a table has a menu in each row.
 */
export function Menu({ trigger, children }: { trigger: ReactNode; children: ReactNode }) {
  if (!useHydrated()) return <Slot.Root aria-haspopup="menu">{trigger}</Slot.Root>;
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Content
        align="end"
        sideOffset={6}
        className="z-50 min-w-44 rounded-lg border border-line bg-raised p-1 text-base shadow-lg"
      >
        {children}
      </DropdownMenu.Content>
    </DropdownMenu.Root>
  );
}

const item =
  "flex w-full cursor-pointer items-center gap-2 rounded-md px-2.5 py-1.5 outline-none data-[highlighted]:bg-hover " +
  "data-[disabled]:cursor-not-allowed data-[disabled]:text-ink-2";

export function MenuItem({
  onSelect,
  danger,
  disabled,
  children,
}: {
  onSelect: () => void;
  danger?: boolean;
  disabled?: boolean;
  children: ReactNode;
}) {
  return (
    <DropdownMenu.Item disabled={disabled} onSelect={onSelect} className={cx(item, danger && "text-bad")}>
      {children}
    </DropdownMenu.Item>
  );
}

export function MenuLink({ children }: { children: ReactNode }) {
  return (
    <DropdownMenu.Item asChild className={item}>
      {children}
    </DropdownMenu.Item>
  );
}

/** One choice of several, with a mark on the one that holds. */
export function MenuChoices<Value extends string>({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: Value;
  options: { value: Value; label: string }[];
  onChange: (value: Value) => void;
}) {
  return (
    <DropdownMenu.Group>
      <DropdownMenu.Label className="px-2.5 pt-1.5 pb-0.5 text-xs text-ink-2">{label}</DropdownMenu.Label>
      <DropdownMenu.RadioGroup value={value} onValueChange={(next) => onChange(next as Value)}>
        {options.map((option) => (
          <DropdownMenu.RadioItem
            key={option.value}
            value={option.value}
            onSelect={(event) => event.preventDefault()}
            className={cx(item, "justify-between")}
          >
            {option.label}
            <DropdownMenu.ItemIndicator className="text-accent">●</DropdownMenu.ItemIndicator>
          </DropdownMenu.RadioItem>
        ))}
      </DropdownMenu.RadioGroup>
    </DropdownMenu.Group>
  );
}

export function MenuRule() {
  return <DropdownMenu.Separator className="my-1 h-px bg-line" />;
}
