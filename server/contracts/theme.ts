/** The look of pages that a person chose in a browser; kept in a cookie so that the server's first answer has it. */
const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

export const themeCookie = "sluice-theme";

/** The value of the cookie; anything unknown is the system's own. */
export function readTheme(value: string | null | undefined): Theme {
  return THEMES.find((theme) => theme === value) ?? "system";
}
