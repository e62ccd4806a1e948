import type { Theme } from "#server/contracts/theme.ts";

export const THEMES: { value: Theme; label: string }[] = [
  { value: "system", label: "As the system" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
];
