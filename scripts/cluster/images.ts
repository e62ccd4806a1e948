/** The images that the tests' pods run, made here and given to the node: no registry is asked. */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { ctr } from "#scripts/cluster/cluster.ts";
import type { Cluster } from "#scripts/cluster/place.ts";
import { PAUSE_IMAGE } from "#scripts/cluster/settings.ts";
import { type Image, makeImage, tagOf, writeArchive, writeLayer } from "#scripts/images/archive.ts";
import { type Base, baseLayer } from "#scripts/images/base.ts";
import { clientImage } from "#scripts/images/client.ts";
import { controlPlaneImage } from "#scripts/images/control-plane.ts";
import { gpudImage } from "#scripts/images/gpud.ts";
import { findOrMake } from "#scripts/images/kept.ts";
import { workspaceImage } from "#scripts/images/workspace.ts";
import { buildNative, buildPortal, buildWheel } from "#scripts/start/builds.ts";
import { ensureEnvironment } from "#server/launchers/local/environment.ts";

type Say = (line: string) => void;

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
};

/** Makes what is missing, and loads it into the node. */
export async function loadImages(cluster: Cluster, { root, say }: { root: string; say: Say }): Promise<Images> {
  const base = await baseLayer(root, say);
  const stateDir = path.join(root, ".sluice", "cluster");
  const quiet = () => undefined;
  say("Bringing the programs and the portal up to date");
  await buildNative(root, quiet);
  await buildPortal(root, { ...process.env, NODE_ENV: "production", NEXT_TELEMETRY_DISABLED: "1" }, quiet);
  const wheel = await buildWheel(root, stateDir, quiet);
  const make = async (name: string) => {
    say(`Bringing the environment ${name} up to date`);
    const environment = await ensureEnvironment(name, { stateDir, wheel, onLine: quiet });
    return await makeImage(await workspaceImage(root, environment), base, say);
  };
  const more: Record<string, Image> = {};
  for (const name of (process.env.SLUICE_TEST_ENVIRONMENTS ?? "minimal").split(",")) more[name] = await make(name);
  const [workspace, controlPlane, gpud, client, bare] = [
    await make("cuda-python"),
    await makeImage(await controlPlaneImage(root, say), base, say),
    await makeImage(await gpudImage(root), base, say),
    await makeImage(await clientImage(root, wheel), base, say),
    await bareImage(say),
  ];
  for (const image of [
    await pauseImage(base, say),
    workspace,
    ...Object.values(more),
    controlPlane,
    gpud,
    client,
    bare,
  ])
    await load(cluster, image, say);
  const names = Object.entries(more).map(([environment, { name }]): [string, string] => [environment, name]);
  return {
    workspaces: { ...Object.fromEntries(names), "cuda-python": workspace.name },
    controlPlane: controlPlane.name,
    gpud: gpud.name,
    client: client.name,
    bare: bare.name,
  };
}

/** Without glibc, as an image is that is built on another C library or on none: only a folder. */
async function bareImage(say: Say): Promise<Pick<Image, "name" | "file">> {
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
async function pauseImage({ layer, tag }: Base, say: Say): Promise<Pick<Image, "name" | "file">> {
  const kept = { kind: "pause", tag, endings: [".tar"] as const };
  const entry = { entrypoint: ["/usr/bin/sleep", "infinity"] };
  const [file] = await findOrMake(kept, say, (file) => writeArchive(file, PAUSE_IMAGE, [layer], entry));
  return { name: PAUSE_IMAGE, file };
}

async function load(cluster: Cluster, image: Pick<Image, "name" | "file">, say: Say): Promise<void> {
  const there = (await ctr(cluster, "images", "ls", "-q")).split("\n");
  if (there.includes(image.name)) return;
  say(`Loading ${image.name}`);
  await ctr(cluster, "images", "import", image.file);
}
