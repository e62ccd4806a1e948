/**
 * Container images as files, made without a registry and without a container engine:
 *
 *   npm run images -- control-plane gpud client cuda-python    these; without words, these four
 *   npm run images -- jax --out dist/images             any environment of the catalogue, written there
 *   npm run images -- gpud --context                    what docker or buildah build it from, and the command for that
 *   npm run images -- --bill dist/images/gpud --tree /mnt    the bill of what an engine has built there, and is mounted
 *
 * `docker load`, `podman load` and `ctr images import` take them. Beside each lies its bill of materials (CycloneDX).
 * Needs root, for a small Debian as their base; `--context` does not.
 */
import { copyFile, mkdir, readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { parseArgs } from "node:util";
import { makeImage, type Recipe, writeContext } from "#scripts/images/archive.ts";
import { baseLayer } from "#scripts/images/base.ts";
import { debianPackages, withPackages } from "#scripts/images/bill.ts";
import { clientImage } from "#scripts/images/client.ts";
import { controlPlaneImage } from "#scripts/images/control-plane.ts";
import { gpudImage } from "#scripts/images/gpud.ts";
import { workspaceImage } from "#scripts/images/workspace.ts";
import { buildNative, buildPortal, buildWheel } from "#scripts/start/builds.ts";
import { ensureEnvironment } from "#server/launchers/local/environment.ts";

const root = process.cwd();
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    out: { type: "string", default: "dist/images" },
    context: { type: "boolean", default: false },
    bill: { type: "string" },
    tree: { type: "string" },
  },
});
const out = path.resolve(values.out);
const say = (line: string) => console.log(line);
const quiet = () => undefined;

if (values.bill !== undefined) {
  if (values.tree === undefined) throw new Error("--bill needs --tree: the folder at which the image's files lie.");
  const file = `${path.resolve(values.bill)}.cdx.json`;
  const layers = await readFile(path.join(values.bill, "layers.cdx.json"), "utf8");
  await writeFile(file, withPackages(layers, await debianPackages(values.tree)));
  say(file);
  process.exit(0);
}

await mkdir(out, { recursive: true });
for (const name of positionals.length === 0 ? ["control-plane", "gpud", "client", "cuda-python"] : positionals) {
  const recipe = await recipeOf(name);
  if (values.context) {
    const folder = path.join(out, name);
    const told = await writeContext(recipe, folder);
    say(`buildah build --file ${path.join(folder, "Containerfile")} ${told.join(" ")} --tag sluice/${name} ${folder}`);
    continue;
  }
  const image = await makeImage(recipe, await baseLayer(root, say), say);
  for (const made of [image.file, image.bill]) await copyFile(made, path.join(out, path.basename(made)));
  const file = path.join(out, path.basename(image.file));
  say(`${image.name}  ${file}  ${((await stat(file)).size / 1e6).toFixed(0)} MB`);
}

async function recipeOf(name: string): Promise<Recipe> {
  await buildNative(root, quiet);
  if (name === "control-plane") {
    await buildPortal(root, { ...process.env, NODE_ENV: "production", NEXT_TELEMETRY_DISABLED: "1" }, quiet);
    return await controlPlaneImage(root, say);
  }
  if (name === "gpud") return await gpudImage(root);
  const stateDir = path.join(root, ".sluice", "images");
  const wheel = await buildWheel(root, stateDir, quiet);
  if (name === "client") return await clientImage(root, wheel);
  return await workspaceImage(root, await ensureEnvironment(name, { stateDir, wheel, onLine: quiet }));
}
