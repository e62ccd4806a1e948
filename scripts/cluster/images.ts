/** The images that the tests' pods run, made here and given to the node: no registry is asked. */
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { ctr } from "#scripts/cluster/cluster.ts";
import type { Cluster } from "#scripts/cluster/place.ts";
import { PAUSE_IMAGE } from "#scripts/cluster/settings.ts";
import { type Image, makeImage, tagOf, writeArchive, writeLayer } from "#scripts/images/archive.ts";
import { type Base, baseLayer } from "#scripts/images/base.ts";
import { clientImage } from "#scripts/images/client.ts";
import { controlPlaneImage, preparePackages } from "#scripts/images/control-plane.ts";
import { gpudImage } from "#scripts/images/gpud.ts";
import { findOrMake } from "#scripts/images/kept.ts";
import { workspaceImage } from "#scripts/images/workspace.ts";
import { fingerprint } from "#scripts/lib/fingerprint.ts";
import { buildNative, buildPortal, buildWheel, portalFingerprint } from "#scripts/start/builds.ts";
import { ensureEnvironment, environmentState, prepareEnvironment } from "#server/launchers/local/environment.ts";

type Say = (line: string) => void;
/** A container image as a file. */
type ImageFile = Pick<Image, "name" | "file">;

/**
 * Names of the images that tests use; `workspaces` by their environments: that of most tests, and those that
 * `SLUICE_TEST_ENVIRONMENTS` names.
 */
export type Images = {
  workspaces: { "cuda-python": string } & Record<string, string>;
  controlPlane: string;
  gpud: string;
  client: string;
  bare: string;
  /** All images as files, by their names, for further nodes. */
  files: Record<string, string>;
};

const quiet = () => undefined;
const stateDirOf = (root: string) => path.join(root, ".sluice", "cluster");
/** Images that load at the same time: unpacking is work for a core and for the disk. */
const LOADS_AT_ONCE = 2;

/** Environments beside `cuda-python` whose images the tests start. */
const otherEnvironments = () => (process.env.SLUICE_TEST_ENVIRONMENTS ?? "minimal").split(",");

/** Makes every image that is missing, with the programs and the portal in them, and loads them into the node. */
export async function loadImages(cluster: Cluster, options: { root: string; say: Say }): Promise<Images> {
  const images = await makeImages(options);
  await loadInto(cluster, images.files, Object.keys(images.files), options.say);
  return images;
}

/** Brings programs, portal and environments up to date and makes every image that is missing. Needs no cluster. */
export async function makeImages({ root, say }: { root: string; say: Say }): Promise<Images> {
  const stateDir = stateDirOf(root);
  const baseOfAll = baseLayer(root, say);
  // Installing the base mostly waits for the network.
  baseOfAll.catch(() => undefined);
  say("Bringing the programs and the portal up to date");
  await buildNative(root, quiet);
  const env = { ...process.env, NODE_ENV: "production" as const, NEXT_TELEMETRY_DISABLED: "1" };
  await buildPortal(root, env, quiet, { background: true });
  const wheel = await buildWheel(root, stateDir, quiet);
  const base = await baseOfAll;
  const workspaces: Record<string, ImageFile> = {};
  for (const name of new Set([...otherEnvironments(), "cuda-python"]))
    workspaces[name] = await makeWorkspaceImage(root, { name, wheel, base }, say);
  const made = {
    controlPlane: await makeImage(await controlPlaneImage(root, say), base, say),
    gpud: await makeImage(await gpudImage(root), base, say),
    client: await makeImage(await clientImage(root, wheel), base, say),
    bare: await bareImage(say),
  };
  const all: ImageFile[] = [await pauseImage(base, say), ...Object.values(workspaces), ...Object.values(made)];
  const nameOf = (name: string) => workspaces[name]?.name ?? "";
  const names = Object.keys(workspaces).map((name): [string, string] => [name, nameOf(name)]);
  return {
    workspaces: { ...Object.fromEntries(names), "cuda-python": nameOf("cuda-python") },
    controlPlane: made.controlPlane.name,
    gpud: made.gpud.name,
    client: made.client.name,
    bare: made.bare.name,
    files: Object.fromEntries(all.map(({ name, file }) => [name, file])),
  };
}

type Wanted = { name: string; wheel: string; base: Base };

async function makeWorkspaceImage(root: string, { name, wheel, base }: Wanted, say: Say): Promise<Image> {
  say(`Bringing the environment ${name} up to date`);
  const environment = await ensureEnvironment(name, { stateDir: stateDirOf(root), wheel, onLine: quiet });
  return await makeImage(await workspaceImage(root, environment), base, say);
}

/** Installs the packages of the tests' environments, as far as that needs no program of ours. */
export async function prepareEnvironments(root: string): Promise<void> {
  const stateDir = stateDirOf(root);
  await mkdir(stateDir, { recursive: true });
  for (const name of new Set([...otherEnvironments(), "cuda-python"])) {
    if ((await environmentState(stateDir, name)).state !== "ready")
      await prepareEnvironment(name, { stateDir, onLine: quiet });
  }
}

/** Makes the images, and the layers of images, that hold no program of this checkout. */
export async function prepareBaseImages(root: string, say: Say): Promise<void> {
  await pauseImage(await baseLayer(root, say), say);
  await bareImage(say);
  await preparePackages(root, say);
}

/**
 * Makes the images whose programs are built already. It builds none, because another process may build them now; what is
 * missing here is made before the tests.
 */
export async function prepareImages(root: string, say: Say): Promise<void> {
  const release = path.join(root, "native", "target", "release");
  const stamp = await readFile(path.join(release, "sluice-stamp"), "utf8").catch(() => "");
  if (stamp !== (await fingerprint(root, ["native"]))) return say("No images of programs: those are not built yet");
  const base = await baseLayer(root, say);
  const wheel = await buildWheel(root, stateDirOf(root), quiet);
  for (const name of new Set([...otherEnvironments(), "cuda-python"]))
    await makeWorkspaceImage(root, { name, wheel, base }, say);
  await makeImage(await gpudImage(root), base, say);
  await makeImage(await clientImage(root, wheel), base, say);
  const portal = await readFile(path.join(root, ".next", "sluice-stamp"), "utf8").catch(() => "");
  if (portal !== (await portalFingerprint(root)))
    return say("No image of the control plane: the portal is not built yet");
  await makeImage(await controlPlaneImage(root, say), base, say);
}

/** Without glibc, as an image is that is built on another C library or on none: only a folder. */
async function bareImage(say: Say): Promise<ImageFile> {
  const name = "localhost/bare:1";
  const kept = { kind: "bare", tag: tagOf(name), endings: [".tar"] as const };
  const [file] = await findOrMake(kept, say, async (file) => {
    const staged = await mkdtemp(path.join(tmpdir(), "sluice-image-"));
    try {
      await mkdir(path.join(staged, "tmp"), { mode: 0o755 });
      await writeLayer(`${file}.layer`, [{ from: staged, to: "/" }]);
      await writeArchive(file, name, [`${file}.layer`], { entrypoint: ["/program"] });
    } finally {
      await rm(`${file}.layer`, { force: true });
      await rm(staged, { recursive: true, force: true });
    }
  });
  return { name, file };
}

/** Holds a pod's namespaces while its containers come and go. */
async function pauseImage({ layer, tag }: Base, say: Say): Promise<ImageFile> {
  const entry = { entrypoint: ["/usr/bin/sleep", "infinity"] };
  const kept = { kind: "pause", tag: tagOf(tag, JSON.stringify(entry)), endings: [".tar"] as const };
  const [file] = await findOrMake(kept, say, (file) => writeArchive(file, PAUSE_IMAGE, [layer], entry));
  return { name: PAUSE_IMAGE, file };
}

/** Loads those of these images that a node does not have. */
export async function loadInto(
  node: Cluster,
  files: Readonly<Record<string, string>>,
  names: readonly string[],
  say: Say = quiet,
): Promise<void> {
  const there = new Set((await ctr(node, "images", "ls", "-q")).split("\n"));
  const missing = names.filter((name) => !there.has(name));
  const lane = async () => {
    for (let name = missing.shift(); name !== undefined; name = missing.shift()) {
      say(`Loading ${name}`);
      await ctr(node, "images", "import", files[name] ?? name);
    }
  };
  await Promise.all(Array.from({ length: LOADS_AT_ONCE }, lane));
}
