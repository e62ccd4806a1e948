/** Names as people type them, in every script: what they may hold, and the sentence that names a wrong character. */
import { z } from "zod";

/** What a name may hold, one character at a time. `more` may follow the first character, `first` begins it as well. */
type Alphabet = { first: string; more: string };

/**
 * Letters of every script with their combining marks, without which Hindi and Thai have no words; joiners stand between
 * letters alone, as Persian and Sinhala write them.
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

/** A word that becomes a part of paths and addresses: lower-case ASCII letters, digits, and `also` after the first. */
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

/** A character as a reader finds it again: itself where it shows, and its code point. */
function spelled(character: string): string {
  const point = `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
  if (/[\p{C}\p{Z}]/u.test(character)) return point;
  return /\p{M}/u.test(character) ? `"◌${character}" (${point})` : `"${character}" (${point})`;
}

/** What breaks a line, is not seen, or turns the direction of what is beside it. */
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

/** Text of a machine as one line: what `typedLine` refuses becomes a space. */
export const asLine = (text: string): string => text.replace(new RegExp(CONTROL, "gu"), " ").trim();
