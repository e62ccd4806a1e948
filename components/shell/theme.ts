/** The look that a person chose; kept in a cookie so that the server's first answer already has it. */
export type Theme = "system" | "light" | "dark";

export const THEMES: { value: Theme; label: string }[] = [
  { value: "system", label: "As the system" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
];

export const themeCookie = "sluice-theme";

/** What the cookie says; anything unknown is the system's own. */
export function readTheme(value: string | undefined): Theme {
  return value === "light" || value === "dark" ? value : "system";
}
