import { type Column, ilike, or, type SQL } from "drizzle-orm";

/** For each word of a search: it is in one of these texts at least, in whatever case. */
export function hasWords(search: string | undefined, texts: (contains: (text: Column | SQL) => SQL) => SQL[]): SQL[] {
  const words = (search ?? "").split(/\s+/).filter((word) => word !== "");
  return words.flatMap((word) => {
    const pattern = `%${word.replace(/[\\%_]/g, "\\$&")}%`;
    return or(...texts((text) => ilike(text, pattern))) ?? [];
  });
}
