/** How an entry of an outgoing network policy is read; browsers load this module too. */

/** Longest list of a team. */
export const MOST_ENTRIES = 100;

/** The sentence about an entry that cannot be read. */
export const NO_ENTRY = "This is no host name (pypi.org, *.example.org), address or range (10.1.0.0/16).";

/** Whether text in lower case is a host name, `*.` before a name, an address, or a range. */
export function isEntry(text: string): boolean {
  if (isRange(text)) return true;
  const labels = (text.startsWith("*.") ? text.slice(2) : text).split(".");
  // A last label of digits is an address in a spelling that some resolvers understand.
  return (
    labels.every((label) => /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/.test(label)) &&
    !/^(?:\d+|0x[0-9a-f]*)$/.test(labels.at(-1) ?? "")
  );
}

/** Whether an entry is an address or a range, not a name. */
export function isRange(entry: string): boolean {
  const [address = "", length, ...rest] = entry.split("/");
  const bits = addressBits(address);
  if (bits === undefined || rest.length > 0) return false;
  return length === undefined || (/^(?:0|[1-9]\d{0,2})$/.test(length) && Number(length) <= bits);
}

/** Bits of an IP address; undefined of other text. Without `node:net`, which browsers lack. */
function addressBits(text: string): 32 | 128 | undefined {
  if (/^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.|$)){4}$/.test(text) && !text.endsWith(".")) return 32;
  return text.includes(":") && /^[0-9a-f:.]+$/i.test(text) && URL.canParse(`http://[${text}]/`) ? 128 : undefined;
}
