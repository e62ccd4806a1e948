import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { expect, it } from "vitest";
import { loadSigner } from "./signer.ts";

it("takes the same key as a JWK and as PEM", async () => {
  const { privateKey } = generateKeyPairSync("ed25519");
  const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  const jwk = JSON.stringify(privateKey.export({ format: "jwk" }));
  const [byPem, byJwk] = await Promise.all(
    [pem, jwk].map((key) => loadSigner({ SLUICE_SIGNING_KEY: key, SLUICE_STATE_DIR: "/nowhere" })),
  );
  expect(byPem?.kid).toBe(byJwk?.kid);
  expect(byPem?.publicKey).toBe(createPublicKey(privateKey).export({ format: "jwk" }).x);
});

it("says what is wrong with a key of another kind", async () => {
  const { privateKey } = generateKeyPairSync("x25519");
  const pem = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  await expect(loadSigner({ SLUICE_SIGNING_KEY: pem, SLUICE_STATE_DIR: "/nowhere" })).rejects.toThrow(/Ed25519/);
});
