import { isIP } from "node:net";
import fc from "fast-check";
import { expect, it } from "vitest";
import { isEntry, isRange } from "./egress-entry.ts";

it.each([
  "pypi.org",
  "*.example.org",
  "localhost",
  "_dmarc.example.org",
  "xn--bcher-kva.example",
  "10.1.0.7",
  "2a00::/12",
])("reads %s", (entry) => expect(isEntry(entry)).toBe(true));

it.each([
  "",
  "*",
  "*.*.org",
  "a..b",
  "-a.org",
  "a b",
  "pypi.org:443",
  "https://pypi.org",
  "pypi.org/simple",
  "127.1",
  "0x7f000001",
])("refuses %j", (entry) => expect(isEntry(entry)).toBe(false));

it.each(["10.0.0.0/8", "0.0.0.0/0", "10.0.0.7", "::/0", "fd00::1/128", "::ffff:10.0.0.1"])(
  "takes %s for a range",
  (entry) => expect(isRange(entry)).toBe(true),
);

it.each([
  "10.0.0.0/33",
  "10.0.0.0/08",
  "10.0.0.0/",
  "10.0.0/8",
  "10.0.0.0.",
  "010.0.0.1",
  "::/129",
  "fe80::1%eth0",
  "pypi.org",
  "1/2",
])("takes %s for no range", (entry) => expect(isRange(entry)).toBe(false));

it("agrees with Node about addresses", () => {
  const made = fc.oneof(fc.ipV4(), fc.ipV6(), fc.string(), fc.stringMatching(/^[0-9a-f:.]{1,20}$/));
  fc.assert(fc.property(made, (text) => isRange(text) === (isIP(text) !== 0)));
});
