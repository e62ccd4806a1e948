import { SluiceError } from "#server/errors.ts";

/**
 * Refuses what was sent when a text anywhere in it cannot be stored: with a NUL character, or with half of a character
 * (a surrogate alone, which JSON can write and UTF-8 cannot).
 */
export function refuseUnstorable(input: unknown): void {
  // Without recursion: what was sent may be nested deeper than the stack.
  const waiting = [input];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value === "string") {
      if (value.includes("\0")) throw new SluiceError("invalid", "A text may not hold a NUL character.");
      if (!value.isWellFormed()) throw new SluiceError("invalid", "A text may not hold half of a character.");
    }
    if (typeof value !== "object" || value === null) continue;
    for (const [name, inner] of Object.entries(value)) waiting.push(name, inner);
  }
}
