/** The image of portal, broker and gateway: the base, Node, the packages that run, and Sluice itself. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, cp, mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { type Image, writeArchive, writeLayer, writeUsers } from "#scripts/images/archive.ts";
import { cacheFolder } from "#scripts/lib/cache.ts";
import { fingerprint } from "#scripts/lib/fingerprint.ts";
import { findBinaries } from "#server/db/embedded.ts";

const HOME = "/opt/sluice";
const POSTGRES = "deploy/images/control-plane/postgres.sh";
/** What runs and is not in `node_modules`. */
const PROGRAM = ["server", "drizzle", ".next", "package.json", "next.config.ts"];
/** What is only built with: the pages lie in `.next` with all that they show. */
const NOT_NEEDED = [
  "typescript",
  "lucide-react",
  "geist",
  "tailwindcss",
  "@tailwindcss",
  "radix-ui",
  "@radix-ui",
  "@types",
];

/** Builds the image from a checkout whose portal is built, unless that was done for the same content. */
export async function controlPlaneImage(root: string, base: string, say: (line: string) => void): Promise<Image> {
  const packages = await lockedLayer(root, say);
  const content = await fingerprint(root, [
    ...PROGRAM.filter((name) => name !== ".next"),
    POSTGRES,
    "package-lock.json",
  ]);
  const pages = await readFile(path.join(root, ".next", "BUILD_ID"), "utf8");
  const tag = createHash("sha256").update(`${content}\0${pages}`).digest("hex").slice(0, 16);
  const name = `localhost/sluice-control-plane:${tag}`;
  const file = path.join(cacheFolder("images"), `control-plane-${tag}.tar`);
  if (existsSync(file)) return { name, file };
  say(`Making the image ${name}`);
  const staged = await mkdtemp(path.join(tmpdir(), "sluice-image-"));
  const layer = `${file}.layer`;
  try {
    await chmod(staged, 0o755);
    await mkdir(path.join(staged, HOME), { recursive: true, mode: 0o755 });
    await writeUsers(staged, { name: "sluice", id: 1000, home: "/tmp" });
    await cp(path.join(root, POSTGRES), path.join(staged, HOME, "postgres.sh"));
    await writeLayer(layer, [
      { from: staged, to: "/" },
      {
        from: root,
        to: HOME,
        only: PROGRAM,
        without: ["./.next/cache", "./.next/trace*", "*.test.ts", "*.cluster.ts"],
      },
    ]);
    await writeArchive(file, name, [base, packages, layer], {
      entrypoint: [`${HOME}/node_modules/node-linux-${process.arch}/bin/node`],
      env: {
        NODE_ENV: "production",
        NEXT_TELEMETRY_DISABLED: "1",
        SLUICE_LISTEN: "0.0.0.0",
        SLUICE_STATE_DIR: "/tmp/sluice",
      },
      user: "1000:1000",
      folder: HOME,
    });
    return { name, file };
  } finally {
    await rm(layer, { force: true });
    await rm(staged, { recursive: true, force: true });
  }
}

/** The packages that `package-lock.json` names, without those for development; one layer for many images. */
async function lockedLayer(root: string, say: (line: string) => void): Promise<string> {
  const lock = createHash("sha256").update(await readFile(path.join(root, "package-lock.json")));
  const layer = path.join(cacheFolder("images"), `packages-${lock.digest("hex").slice(0, 16)}.tar`);
  if (existsSync(layer)) return layer;
  say("Packing the packages of the control plane");
  // Lays out what PostgreSQL's package keeps in a list.
  await findBinaries();
  const listing = await promisify(execFile)("npm", ["ls", "--omit=dev", "--all", "--parseable"], {
    cwd: root,
    maxBuffer: 1 << 24,
  }).catch((error: { stdout?: string }) => ({ stdout: error.stdout ?? "" }));
  const folder = path.join(root, "node_modules");
  const names = new Set<string>();
  for (const line of listing.stdout.split("\n")) {
    const inside = path.relative(folder, line).split(path.sep);
    const name = inside[0]?.startsWith("@") ? inside.slice(0, 2).join("/") : inside[0];
    if (line.startsWith(`${folder}/`) && name !== undefined) names.add(name);
  }
  if (!names.has("next")) throw new Error("npm lists no packages here: run `npm ci` first.");
  const wanted = [...names].filter(
    (name) => !NOT_NEEDED.includes(name) && !NOT_NEEDED.includes(name.split("/")[0] ?? ""),
  );
  await mkdir(path.dirname(layer), { recursive: true });
  await writeLayer(layer, [
    {
      from: folder,
      to: `${HOME}/node_modules`,
      only: wanted.sort(),
      without: [`./node-linux-${process.arch}/include`, `./node-linux-${process.arch}/share`, "*.map", "*.md"],
    },
  ]);
  return layer;
}
