/** A registry of images on the node's loopback, where containerd asks without TLS; it wants a user and a password. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { ctr } from "#scripts/cluster/cluster.ts";
import type { Cluster } from "#scripts/cluster/place.ts";
import { startService } from "#scripts/lib/processes.ts";

/** The registry of a test file, as the host in its images' names. Files run at the same time, so each has its own port. */
export const registryAt = (port: number) => `localhost:${port}`;
/** Who may pull and push. */
export const LOGIN = { user: "puller", password: "correct" };
/** That user with that password, as bcrypt. */
const PASSWORDS = "puller:$2b$04$GJWTNOe/XhkD.p87DvWLvONZ/GE.sRJTx9hS4WzhxFm2XPYjXRmJK\n";

/** Starts it in the network of the calling process, which has to be the node's; `host`: see `registryAt`. */
export async function startRegistry(cluster: Cluster, host: string) {
  const folder = await mkdtemp(path.join(tmpdir(), "sluice-registry-"));
  const storage = path.join(folder, "images");
  await mkdir(storage);
  await writeFile(path.join(folder, "passwords"), PASSWORDS);
  const config = {
    version: "0.1",
    log: { level: "info", accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: storage } },
    http: { addr: host.replace("localhost", "127.0.0.1") },
    auth: { htpasswd: { realm: "images", path: path.join(folder, "passwords") } },
  };
  // YAML holds JSON.
  await writeFile(path.join(folder, "config.yml"), JSON.stringify(config));
  const service = await startService("registry", {
    command: "docker-registry",
    args: ["serve", path.join(folder, "config.yml")],
    env: process.env,
    logFile: path.join(folder, "log"),
    ready: (line) => line.includes("listening on"),
  });
  return {
    /** Puts an image of the node there, and gives its digest. */
    push: async (image: string, name: string): Promise<string> => {
      await ctr(cluster, "images", "tag", "--force", image, name);
      await ctr(cluster, "images", "push", "--plain-http", "--user", `${LOGIN.user}:${LOGIN.password}`, name);
      const [, line = ""] = (await ctr(cluster, "images", "ls", `name==${name}`)).split("\n");
      await forget(cluster, name.slice(0, name.lastIndexOf(":")));
      return /sha256:[0-9a-f]{64}/.exec(line)?.[0] ?? "";
    },
    stop: async () => {
      await service.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The node pulls the images of a repository as if it had never seen them, whoever has pulled them before. */
async function forget(cluster: Cluster, repository: string): Promise<void> {
  const known = (await ctr(cluster, "images", "ls", "-q")).split("\n");
  const those = known.filter((name) => name.startsWith(`${repository}:`) || name.startsWith(`${repository}@`));
  await ctr(cluster, "images", "rm", "--sync", ...those);
}

/** A secret by which pods pull from a registry, or with another password do not. */
export function registrySecret(host: string, name: string, namespace: string, password = LOGIN.password) {
  const auths = { [host]: { username: LOGIN.user, password } };
  return {
    ...{ apiVersion: "v1", kind: "Secret", metadata: { name, namespace }, type: "kubernetes.io/dockerconfigjson" },
    stringData: { ".dockerconfigjson": JSON.stringify({ auths }) },
  };
}
