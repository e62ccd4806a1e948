/** The images that the tests' pods run, made here and given to the node: no registry is asked. */
import { existsSync } from "node:fs";
import path from "node:path";
import { ctr } from "#scripts/cluster/cluster.ts";
import type { Cluster } from "#scripts/cluster/place.ts";
import { PAUSE_IMAGE } from "#scripts/cluster/settings.ts";
import { writeArchive } from "#scripts/images/archive.ts";
import { baseLayer } from "#scripts/images/base.ts";
import { type Image, workspaceImage } from "#scripts/images/workspace.ts";
import { cacheFolder } from "#scripts/lib/cache.ts";
import { buildNative, buildWheel } from "#scripts/start/builds.ts";
import { ensureEnvironment } from "#server/launchers/local/environment.ts";

type Say = (line: string) => void;

/** Names of the images that tests use. */
export type Images = { workspace: string };

/** Makes what is missing, and loads it into the node. */
export async function loadImages(cluster: Cluster, { root, say }: { root: string; say: Say }): Promise<Images> {
  const base = await baseLayer(say);
  const stateDir = path.join(root, ".sluice", "cluster");
  const quiet = () => undefined;
  say("Bringing the programs and the environment up to date");
  await buildNative(root, quiet);
  const wheel = await buildWheel(root, stateDir, quiet);
  const environment = await ensureEnvironment("cuda-python", { stateDir, wheel, onLine: quiet });
  const workspace = await workspaceImage(environment, base, say);
  await load(cluster, await pauseImage(base), say);
  await load(cluster, workspace, say);
  return { workspace: workspace.name };
}

/** Holds a pod's namespaces while its containers come and go. */
async function pauseImage(base: string): Promise<Image> {
  const file = path.join(cacheFolder("images"), "pause.tar");
  if (!existsSync(file)) await writeArchive(file, PAUSE_IMAGE, [base], { entrypoint: ["/usr/bin/sleep", "infinity"] });
  return { name: PAUSE_IMAGE, file };
}

async function load(cluster: Cluster, image: Image, say: Say): Promise<void> {
  const there = (await ctr(cluster, "images", "ls", "-q")).split("\n");
  if (there.includes(image.name)) return;
  say(`Loading ${image.name}`);
  await ctr(cluster, "images", "import", image.file);
}
