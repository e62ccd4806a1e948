/** In the order in which they claim to be each other: Edge says that it is Chrome, and Chrome that it is Safari. */
const BROWSERS: [mark: RegExp, name: string][] = [
  [/\bEdg(?:e|A|iOS)?\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\b(?:Firefox|FxiOS)\//, "Firefox"],
  [/\b(?:Chrome|Chromium|CriOS|HeadlessChrome)\//, "Chrome"],
  [/\bSafari\//, "Safari"],
];
/** An iPhone says "like Mac OS X", Android that it is Linux. */
const SYSTEMS: [mark: RegExp, name: string][] = [
  [/iPhone|iPad/, "iOS"],
  [/Android/, "Android"],
  [/Windows/, "Windows"],
  [/Mac OS X|Macintosh/, "macOS"],
  [/CrOS/, "ChromeOS"],
  [/Linux/, "Linux"],
];

/** What people call a browser that says this of itself: `Firefox on Linux`. */
export function browserName(userAgent: string | null): string {
  const find = (names: typeof BROWSERS) => names.find(([mark]) => mark.test(userAgent ?? ""))?.[1];
  const browser = find(BROWSERS);
  const system = find(SYSTEMS);
  if (browser === undefined) return system === undefined ? "Another program" : `Another program on ${system}`;
  return system === undefined ? browser : `${browser} on ${system}`;
}
