import { expect, it } from "vitest";
import { providerFailure } from "./provider-failure.ts";

it.each([
  ["JWT not active yet, now 1764400000, nbf 1764400600", "clock"],
  ["JWT expired, now 1764400000, exp 1764399000", "expired"],
  ["invalid_client (client authentication failed)", "client"],
  ["redirect_uri did not match any of the client's registered redirect_uris", "redirect"],
  ["unexpected iss value, expected https://a.example, got: https://b.example", "issuer"],
  ["State cookie was missing.", "restart"],
  ["access_denied (the person is not assigned to this application)", "refused"],
  ["connect ECONNREFUSED 127.0.0.1:9", "unreachable"],
  ["expected 200 OK, got: 503 Service Unavailable", "unreachable"],
  ["something new", "unknown"],
])("finds what is wrong in: %s", (message, code) => {
  expect(providerFailure({ error: new Error(message), providerId: "oidc" })).toMatchObject({ code });
});

it("keeps one line without possible secrets", () => {
  const state = "s".repeat(43);
  const token = `eyJ${"a".repeat(60)}.eyJ${"b".repeat(60)}.c`;
  const said = (message: string, description?: string) =>
    providerFailure({ error: new Error(message), error_description: description }).said;
  expect(said(`state mismatch, expected ${state}, got: other`)).toBe("state mismatch");
  expect(said("nonce mismatch, expected abc, got: def")).toBe("nonce mismatch");
  expect(said(`failed ${token}`)).toBe("failed [hidden]");
  expect(said("access_denied", `line one\nline two ${"word ".repeat(100)}`)).toMatch(/^[^\n]{1,200}$/);
});
