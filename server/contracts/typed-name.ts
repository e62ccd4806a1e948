/** Names typed by people, in every script: allowed characters, and an error that names the first invalid one. */
import { z } from "zod";

/** Allowed characters of a name. `first`: at every position; `more`: only after the first character. */
type Alphabet = { first: string; more: string };

/**
 * Letters of every script with their combining marks, which Hindi and Thai need. Joiners, which Persian and Sinhala
 * need, are allowed between letters only.
 */
const LETTERS: Alphabet = { first: "\\p{L}\\p{N}", more: "\\p{M}" };
const JOINER = "(?<=[\\p{L}\\p{M}])[\\u200c\\u200d](?=\\p{L})";

/** A name of letters and digits of every script, and of `also` after the first. Composed (NFC) before it is checked. */
export function typedName({ max, also, sentence }: { max: number; also: string; sentence: string }) {
  const { first, more } = LETTERS;
  const pattern = new RegExp(`^[${first}](?:[${first}${more}${also}]|${JOINER})*$`, "u");
  return z
    .string()
    .trim()
    .normalize("NFC")
    .min(1, "A name is needed.")
    .max(max, `A name has at most ${max} characters.`)
    .regex(pattern, { error: ({ input }) => refusal(input, sentence, { first, more: `${more}${also}` }) });
}

/** A name that becomes a part of paths and addresses: lower-case ASCII letters, digits, and `also` after the first. */
export function typedWord({ max, also, sentence }: { max: number; also: string; sentence: string }) {
  const first = "a-z0-9";
  return z
    .string()
    .trim()
    .regex(new RegExp(`^[${first}][${first}${also}]{0,${max - 1}}$`), {
      error: ({ input }) => refusal(input, sentence, { first, more: also }, max),
    });
}

/** The rule, then the first character that breaks it. */
export function refusal(input: unknown, sentence: string, { first, more }: Alphabet, max?: number): string {
  const characters = [...String(input)];
  const begins = new RegExp(`[${first}]`, "u");
  const follows = new RegExp(`[${first}${more}]`, "u");
  const at = characters.findIndex((character, index) => !(index === 0 ? begins : follows).test(character));
  const wrong = characters[at];
  if (wrong === undefined)
    return max !== undefined && characters.length > max ? `${sentence} At most ${max} characters.` : sentence;
  return `${sentence} ${spelled(wrong)} is not allowed${at === 0 && follows.test(wrong) ? " at the start" : ""}.`;
}

/** A character as it appears in an error: the visible character, if any, and its code point. */
function spelled(character: string): string {
  const point = `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
  if (/[\p{C}\p{Z}]/u.test(character)) return point;
  return /\p{M}/u.test(character) ? `"◌${character}" (${point})` : `"${character}" (${point})`;
}

/** Control characters, line breaks, and bidirectional overrides. */
const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u;

/** One line of text in every script, such as a person's name. Composed (NFC) before it is checked. */
export function typedLine({ max, needed }: { max: number; needed: string }) {
  return z
    .string()
    .trim()
    .normalize("NFC")
    .min(1, needed)
    .max(max)
    .refine((text) => !CONTROL.test(text), {
      error: ({ input }) =>
        `One line of text is needed. ${spelled(CONTROL.exec(String(input))?.[0] ?? "")} is not allowed.`,
    });
}

/** Text of another program as one line: characters that `typedLine` refuses become spaces. */
export const asLine = (text: string): string => text.replace(new RegExp(CONTROL, "gu"), " ").trim();
