"use client";

import { Select } from "#components/ui/field.tsx";
import type { Theme } from "#server/contracts/theme.ts";
import { THEMES } from "./theme.ts";
import { useTheme } from "./use-theme.ts";

/** How the pages look in this browser, as the menu under one's name has it. */
export function ChooseTheme({ initial }: { initial: Theme }) {
  const [theme, choose] = useTheme(initial);
  return (
    <Select
      label="Appearance"
      className="max-w-72"
      hint="Used in this browser."
      value={theme}
      onChange={(event) => choose(THEMES.find(({ value }) => value === event.currentTarget.value)?.value ?? "system")}
    >
      {THEMES.map(({ value, label }) => (
        <option key={value} value={value}>
          {label}
        </option>
      ))}
    </Select>
  );
}
