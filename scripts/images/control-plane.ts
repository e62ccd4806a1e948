/** The image of portal, broker and gateway: the base, Node, the packages that run, Sluice itself, and gpud to download. */
import { execFile } from "node:child_process";
import { cp, mkdir, readFile, symlink } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { type Recipe, tagOf, writeLayer, writeUsers } from "#scripts/images/archive.ts";
import { crates, npmPackages } from "#scripts/images/bill.ts";
import { containerfileText } from "#scripts/images/containerfile.ts";
import { PROGRAM as GPUD } from "#scripts/images/gpud.ts";
import { findOrMake } from "#scripts/images/kept.ts";
import { fingerprint } from "#scripts/lib/fingerprint.ts";
import { findBinaries } from "#server/db/embedded-program.ts";

const HOME = "/opt/sluice";
const POSTGRES = "deploy/images/control-plane/postgres.sh";
/** What of the packages is packed follows from these and the lock. */
const PACKED = ["scripts/images/control-plane.ts", "scripts/patch-postgres.mjs"];
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

/** Of a checkout whose Rust and portal are built. The portal offers gpud to GPU servers outside the cluster. */
export async function controlPlaneImage(root: string, say: (line: string) => void): Promise<Recipe> {
  const written = [...PROGRAM.filter((name) => name !== ".next"), POSTGRES, "package-lock.json"];
  const pages = await readFile(path.join(root, ".next", "BUILD_ID"), "utf8");
  const folders = await packageFolders(root);
  const gpud = await readFile(path.join(root, GPUD));
  return {
    root,
    word: "control-plane",
    tag: tagOf(await fingerprint(root, written), pages, gpud, await containerfileText(root, "control-plane")),
    layers: { "packages.tar": await lockedLayer(root, folders, say) },
    stage: async (staged) => {
      await mkdir(path.join(staged, HOME), { recursive: true, mode: 0o755 });
      await writeUsers(staged, { name: "sluice", id: 1000, home: "/tmp" });
      await cp(path.join(root, POSTGRES), path.join(staged, HOME, "postgres.sh"));
      await mkdir(path.dirname(path.join(staged, HOME, GPUD)), { recursive: true, mode: 0o755 });
      await cp(path.join(root, GPUD), path.join(staged, HOME, GPUD));
      // One name of the entry for all processors.
      await symlink(`node_modules/node-linux-${process.arch}/bin/node`, path.join(staged, HOME, "node"));
    },
    parts: [
      {
        from: root,
        to: HOME,
        only: PROGRAM,
        without: ["./.next/cache", "./.next/trace*", "*.test.ts", "*.cluster.ts", "*.guest.ts"],
      },
    ],
    packages: async () => [...(await npmPackages(folders)), ...(await crates(root, ["sluice-gpud"]))],
  };
}

/** Makes the layer of packages, which follows from the lock alone and not from a build. */
export async function preparePackages(root: string, say: (line: string) => void): Promise<void> {
  await lockedLayer(root, await packageFolders(root), say);
}

/** One layer of these packages for many images. */
async function lockedLayer(root: string, folders: readonly string[], say: (line: string) => void): Promise<string> {
  const lock = await readFile(path.join(root, "package-lock.json"));
  const tag = tagOf(lock, await fingerprint(root, PACKED), process.arch);
  const kept = { kind: "packages", tag, endings: [".tar"] as const };
  const [layer] = await findOrMake(kept, say, async (layer) => {
    say("Packing the packages of the control plane");
    // Lays out what PostgreSQL's package keeps in a list.
    await findBinaries();
    const modules = path.join(root, "node_modules");
    await writeLayer(layer, [
      {
        from: modules,
        to: `${HOME}/node_modules`,
        only: [...new Set(folders.map((folder) => outermost(path.relative(modules, folder))))].sort(),
        without: [`./node-linux-${process.arch}/include`, `./node-linux-${process.arch}/share`, "*.map", "*.md"],
      },
    ]);
  });
  return layer;
}

/** Where the packages lie that `package-lock.json` names, without those for development and those only built with. */
async function packageFolders(root: string): Promise<string[]> {
  const listing = await promisify(execFile)("npm", ["ls", "--omit=dev", "--all", "--parseable"], {
    cwd: root,
    maxBuffer: 1 << 24,
  }).catch((error: { stdout?: string }) => ({ stdout: error.stdout ?? "" }));
  const modules = path.join(root, "node_modules");
  const folders = listing.stdout.split("\n").filter((line) => {
    const name = outermost(path.relative(modules, line));
    return (
      line.startsWith(`${modules}/`) && !NOT_NEEDED.includes(name) && !NOT_NEEDED.includes(name.split("/")[0] ?? "")
    );
  });
  if (!folders.includes(path.join(modules, "next"))) throw new Error("npm lists no packages here: run `npm ci` first.");
  return folders;
}

/** `@scope/name` of `@scope/name/node_modules/other`. */
function outermost(folder: string): string {
  return folder.split("/", folder.startsWith("@") ? 2 : 1).join("/");
}
