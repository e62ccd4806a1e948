/**
 * Container images as files, made without a registry and without a container engine:
 *
 *   npm run images -- control-plane gpud client cuda-python    these; without words, these four
 *   npm run images -- jax --out dist/images             any environment of the catalogue, written there
 *
 * `docker load`, `podman load` and `ctr images import` take them. Beside each lies its bill of materials (CycloneDX).
 * Needs root, for a small Debian as their base.
 */
import { copyFile, mkdir, stat } from "node:fs/promises";
import path from "node:path";
import type { Image } from "#scripts/images/archive.ts";
import { baseLayer } from "#scripts/images/base.ts";
import { clientImage } from "#scripts/images/client.ts";
import { controlPlaneImage } from "#scripts/images/control-plane.ts";
import { gpudImage } from "#scripts/images/gpud.ts";
import { workspaceImage } from "#scripts/images/workspace.ts";
import { buildNative, buildPortal, buildWheel } from "#scripts/start/builds.ts";
import { ensureEnvironment } from "#server/launchers/local/environment.ts";

const root = process.cwd();
const words = process.argv.slice(2);
const at = words.indexOf("--out");
const out = path.resolve(at === -1 ? "dist/images" : (words.splice(at, 2)[1] ?? "dist/images"));
const wanted = words.length === 0 ? ["control-plane", "gpud", "client", "cuda-python"] : words;
const say = (line: string) => console.log(line);
const quiet = () => undefined;

const base = await baseLayer(say);
await mkdir(out, { recursive: true });
for (const name of wanted) {
  const image = await make(name);
  for (const made of [image.file, image.bill]) await copyFile(made, path.join(out, path.basename(made)));
  const file = path.join(out, path.basename(image.file));
  console.log(`${image.name}  ${file}  ${((await stat(file)).size / 1e6).toFixed(0)} MB`);
}

async function make(name: string): Promise<Image> {
  if (name === "control-plane") {
    await buildPortal(root, { ...process.env, NODE_ENV: "production", NEXT_TELEMETRY_DISABLED: "1" }, quiet);
    return await controlPlaneImage(root, base, say);
  }
  await buildNative(root, quiet);
  if (name === "gpud") return await gpudImage(root, base, say);
  const stateDir = path.join(root, ".sluice", "images");
  const wheel = await buildWheel(root, stateDir, quiet);
  if (name === "client") return await clientImage(root, wheel, base, say);
  return await workspaceImage(await ensureEnvironment(name, { stateDir, wheel, onLine: quiet }), base, say);
}
