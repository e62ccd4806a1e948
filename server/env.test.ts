import { describe, expect, it } from "vitest";
import { readEnv } from "#server/env.ts";

describe("settings", () => {
  it("have defaults for an installation on one machine", () => {
    expect(readEnv({})).toMatchObject({
      SLUICE_PORTAL_PORT: 3000,
      SLUICE_GATEWAY_HOST: "localhost",
      SLUICE_LAUNCHERS: ["local"],
      SLUICE_PROXY_HOPS: 0,
    });
    expect(() => readEnv({ SLUICE_PROXY_HOPS: "-1" })).toThrow("SLUICE_PROXY_HOPS");
  });

  it("count as not given when empty", () => {
    expect(readEnv({ DATABASE_URL: "", SLUICE_OIDC_ISSUER: "" })).toMatchObject({ SLUICE_OIDC_NAME: "SSO" });
    expect(readEnv({ DATABASE_URL: "" }).DATABASE_URL).toBeUndefined();
  });

  it("lose a slash at the end of an address, and spaces around launchers", () => {
    const env = readEnv({ SLUICE_PORTAL_URL: "https://gpu.example.org/", SLUICE_LAUNCHERS: "local, kubernetes," });
    expect(env.SLUICE_PORTAL_URL).toBe("https://gpu.example.org");
    expect(env.SLUICE_LAUNCHERS).toEqual(["local", "kubernetes"]);
  });

  it.each(["SLUICE_PORTAL_URL", "SLUICE_GATEWAY_URL"])("reject a path in %s, and say what to set instead", (name) => {
    expect(() => readEnv({ [name]: "https://example.org:8443/sluice/" })).toThrow(
      `${name}: Sluice cannot be served below a path. ` +
        'Give it a host name of its own, and set https://example.org:8443 without "/sluice".',
    );
    for (const wrong of ["https://example.org?a=1", "https://example.org#a", "https://ann:secret@example.org"]) {
      expect(() => readEnv({ [name]: wrong })).toThrow(name);
    }
    expect(readEnv({ [name]: "https://example.org:8443/" })).toMatchObject({ [name]: "https://example.org:8443" });
  });

  it("are all named when they are wrong", () => {
    const wrong = { SLUICE_PORTAL_PORT: "http", SLUICE_PORTAL_URL: "ftp://x", SLUICE_AUTH_SECRET: "short" };
    expect(() => readEnv(wrong)).toThrow(/SLUICE_PORTAL_URL[\s\S]*SLUICE_PORTAL_PORT[\s\S]*SLUICE_AUTH_SECRET/);
  });

  it("trust an e-mail without email_verified only when told to, and never for accounts of every Microsoft tenant", () => {
    expect(readEnv({}).SLUICE_OIDC_TRUST_EMAIL).toBe(false);
    const microsoft = (tenant: string) => ({
      SLUICE_OIDC_TRUST_EMAIL: "1",
      SLUICE_OIDC_ISSUER: `https://login.microsoftonline.com/${tenant}/v2.0`,
    });
    expect(readEnv(microsoft("8eaef023-2b34-4da1-9baa-8bc8c9d6a490")).SLUICE_OIDC_TRUST_EMAIL).toBe(true);
    for (const tenant of ["common", "organizations", "consumers"]) {
      expect(() => readEnv(microsoft(tenant))).toThrow("SLUICE_OIDC_TRUST_EMAIL");
    }
    expect(() => readEnv({ SLUICE_OIDC_TRUST_EMAIL: "yes" })).toThrow("SLUICE_OIDC_TRUST_EMAIL");
  });

  it("read the sockets that a process inherits", () => {
    expect(readEnv({}).SLUICE_LISTEN_FDS).toEqual([]);
    expect(readEnv({ SLUICE_LISTEN_FDS: "3001=3,3003=4" }).SLUICE_LISTEN_FDS).toEqual([
      { port: 3001, fd: 3 },
      { port: 3003, fd: 4 },
    ]);
    expect(() => readEnv({ SLUICE_LISTEN_FDS: "3001" })).toThrow("SLUICE_LISTEN_FDS");
  });

  it("name a time zone that is known, UTC where none is given", () => {
    expect(readEnv({}).SLUICE_TIME_ZONE).toBe("UTC");
    expect(readEnv({ SLUICE_TIME_ZONE: "Europe/Berlin" }).SLUICE_TIME_ZONE).toBe("Europe/Berlin");
    expect(() => readEnv({ SLUICE_TIME_ZONE: "Europe/Berlim" })).toThrow(
      "SLUICE_TIME_ZONE: an IANA time zone, e.g. Europe/Berlin",
    );
  });
});
