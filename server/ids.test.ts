import fc from "fast-check";
import { expect, it } from "vitest";
import { base32, hashSecret, newCode, newId, newSecret, uuidv7 } from "#server/ids.ts";

it("makes ids that are DNS labels and sort by time", () => {
  const id = newId("ws");
  expect(id).toMatch(/^ws-[a-z2-7]{26}$/);
  expect(id.length).toBeLessThanOrEqual(63);
  const [earlier, later] = [base32(uuidv7(1_000_000)), base32(uuidv7(1_000_001))];
  // base32's letters come before its digits, and in ASCII after them: compare by value.
  const value = (text: string) =>
    [...text].map((c) => "abcdefghijklmnopqrstuvwxyz234567".indexOf(c).toString(32).padStart(2, "0")).join("");
  expect(value(earlier) < value(later)).toBe(true);
});

it("encodes as RFC 4648 does", () => {
  const text = (value: string) => base32(Buffer.from(value));
  expect([text(""), text("f"), text("fo"), text("foo"), text("foob"), text("fooba"), text("foobar")]).toEqual([
    "",
    "my",
    "mzxq",
    "mzxw6",
    "mzxw6yq",
    "mzxw6ytb",
    "mzxw6ytboi",
  ]);
});

it("loses no byte", () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 16, maxLength: 16 }),
      fc.uint8Array({ minLength: 16, maxLength: 16 }),
      (a, b) => {
        expect(base32(a) === base32(b)).toBe(Buffer.compare(a, b) === 0);
      },
    ),
  );
});

it("carries version 7 and the variant of RFC 9562", () => {
  const bytes = uuidv7();
  expect((bytes[6] ?? 0) >> 4).toBe(7);
  expect((bytes[8] ?? 0) >> 6).toBe(2);
});

it("never makes a secret twice, and keeps only a hash", () => {
  const secrets = new Set(Array.from({ length: 1000 }, () => newSecret("slp")));
  expect(secrets.size).toBe(1000);
  expect(newSecret("slw")).toMatch(/^slw_[A-Za-z0-9_-]{43}$/);
  expect(newCode()).toMatch(/^[A-Za-z0-9_-]{43}$/);
  expect(hashSecret("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
});
