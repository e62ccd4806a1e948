import { describe, expect, it } from "vitest";
import { secretsFrom, setCookie } from "./cookies.ts";
import { originOf, workspaceOfHost } from "./hosts.ts";
import { withoutToken } from "./proxy-headers.ts";

const id = `ws-${"a".repeat(26)}`;
const address = { host: "work.example.org", url: "https://work.example.org" };

describe("hostnames", () => {
  it("name a workspace by their first label alone", () => {
    expect(workspaceOfHost(`${id}.work.example.org`, address)).toBe(id);
    expect(workspaceOfHost(`${id.toUpperCase()}.WORK.example.org:443`, address)).toBe(id);
    for (const host of [
      undefined,
      "",
      "work.example.org",
      `x.${id}.work.example.org`,
      `${id}.work.example.org.evil.org`,
      `${id}work.example.org`,
    ]) {
      expect(workspaceOfHost(host, address)).toBeUndefined();
    }
    expect(originOf(id, address)).toBe(`https://${id}.work.example.org`);
  });
});

describe("the cookie", () => {
  it("has the prefix that no other host can set, over HTTPS", () => {
    const secret = "s".repeat(43);
    expect(setCookie(secret, true)).toBe(`__Host-sluice-workspace=${secret}; Path=/; HttpOnly; SameSite=Lax; Secure`);
    expect(secretsFrom(`a=b; __Host-sluice-workspace=${secret}`, true)).toEqual([secret]);
    expect(secretsFrom(`sluice-workspace=${secret}`, true)).toEqual([]);
    expect(secretsFrom("__Host-sluice-workspace=short", true)).toEqual([]);
  });
});

describe("a target's query", () => {
  it.each([
    ["/lab", "/lab"],
    ["/lab?token=x", "/lab"],
    ["/lab?a=1&token=x&b=2", "/lab?a=1&b=2"],
    ["/lab?TOKEN=x&%74%6Fken=y&a=%zz", "/lab?a=%zz"],
    ["/files/a%20b?tokens=1&q=token", "/files/a%20b?tokens=1&q=token"],
    ["/x?a=?token=1", "/x?a=?token=1"],
  ])("%s becomes %s", (before, after) => {
    expect(withoutToken(before)).toBe(after);
  });
});
