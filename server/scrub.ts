/** Takes secrets out of lines that are about to be logged, wherever in them they stand. */

const HIDDEN = "[hidden]";

/** The shapes that secrets have here; each keeps what says which kind it was. */
const SHAPES: [shape: RegExp, instead: string][] = [
  // Ours: tokens, credentials, join tokens.
  [/\b(sl[pwj]_)[A-Za-z0-9_-]{16,}/g, `$1${HIDDEN}`],
  // Signed and encrypted tokens (JWT, JWE), from the first `eyJ` of a word on: one attempt a word keeps it linear.
  [/(?<![\w-])((?:(?!\beyJ)[\w-])*)eyJ[\w-]{8,}(?:\.[\w-]*){2,4}/g, `$1${HIDDEN}`],
  // Hashes of passwords.
  [/\$argon2[a-z]*\$[^\s",]+/g, HIDDEN],
  // Passwords in addresses, whatever the scheme: looking for its beginning would not be linear.
  [/(:\/\/[^\s:@/"]*:)[^\s@/"]+@/g, `$1${HIDDEN}@`],
  // One-time codes and tokens in the query of an address, and one-time codes in its path.
  [/([?&](?:token|code|state|secret)=)[^\s&"\\]+/gi, `$1${HIDDEN}`],
  [/(\/(?:invite|invitations|password|password-links)\/)[A-Za-z0-9_-]{43}/g, `$1${HIDDEN}`],
  [/\b(bearer|token) [A-Za-z0-9._~+/-]{16,}=*/gi, `$1 ${HIDDEN}`],
  // What was bound to a statement that failed: the error's text holds all of it, up to the end or the stack.
  [/(\\nparams: )(?:[^"\\]|\\(?!n {4}at )[\s\S])*/g, `$1${HIDDEN}`],
  [/("params":)\[(?:[^\]"]|"(?:[^"\\]|\\.)*")*\]/g, `$1["${HIDDEN}"]`],
];

/** A JSON line without secrets; it stays JSON. */
export function scrub(line: string): string {
  return SHAPES.reduce((text, [shape, instead]) => text.replace(shape, instead), line);
}
