/**
 * QEMU, a kernel and busybox for the guest: packages of this machine's distribution, unpacked beside the images and not
 * installed. The folder is named by the packages' SHA-256, which apt-get checks.
 */
import { execFile, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { whenFree } from "#scripts/cluster/machine.ts";
import { tagOf } from "#scripts/images/archive.ts";
import { findOrMake } from "#scripts/images/kept.ts";
import { run } from "#scripts/lib/processes.ts";

const execute = promisify(execFile);

/** Raised when the way of unpacking changes. */
const RECIPE = "2";
/** The cloud kernel has no 9p. */
const KERNEL = "linux-image-amd64";
const PROGRAMS = ["qemu-system-x86", "busybox-static"];
/** Modules that bring the host's files into the guest, without the modules that these depend on. */
const MODULES = ["virtio_pci", "9pnet_virtio", "9p", "overlay"];

export type GuestTools = {
  /** The program and its arguments so far. */
  qemu: string[];
  env: NodeJS.ProcessEnv;
  kernel: string;
  /** A static program that also makes the initial RAM disk. */
  busybox: string;
  /** Module files in the order of loading. */
  modules: string[];
};

/** Why no guest can run here; undefined when one can. */
export function whyNoGuest(): string | undefined {
  if (process.platform !== "linux" || process.arch !== "x64") return "it needs Linux on x86-64";
  if (!existsSync("/usr/bin/apt-get")) return "its parts come by apt-get, which is missing";
  return undefined;
}

/** Downloads and unpacks what is missing. */
export async function guestTools(say: (line: string) => void): Promise<GuestTools> {
  const packages = await wantedPackages();
  const tag = tagOf(RECIPE, ...packages.map(({ sha256 }) => sha256).sort());
  const [folder] = await findOrMake({ kind: "guest", tag, endings: [""] as const }, say, async (folder) => {
    say(`Downloading ${packages.length} packages for the virtual machine`);
    await unpack(
      packages.map(({ name }) => name),
      folder,
    );
  });
  const own = path.join(folder, "usr/bin/qemu-system-x86_64");
  const libraries = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"].map((name) => path.join(folder, name));
  const firmware = ["usr/share/qemu", "usr/share/seabios"].flatMap((name) => ["-L", path.join(folder, name)]);
  const kernel = (await readdir(path.join(folder, "boot"))).find((name) => name.startsWith("vmlinuz-"));
  if (kernel === undefined) throw new Error(`The package of ${KERNEL} holds no kernel.`);
  // No package of an installed QEMU is downloaded.
  const isUnpacked = existsSync(own);
  return {
    qemu: isUnpacked ? [own, ...firmware] : ["qemu-system-x86_64"],
    env: { ...process.env, ...(isUnpacked && { LD_LIBRARY_PATH: libraries.join(":") }) },
    kernel: path.join(folder, "boot", kernel),
    busybox: existsSync(path.join(folder, "bin/busybox")) ? path.join(folder, "bin/busybox") : "/bin/busybox",
    modules: await modulesOf(path.join(folder, "lib/modules", kernel.slice("vmlinuz-".length), "kernel")),
  };
}

type Package = { name: string; sha256: string };

/** The kernel, and the programs with all dependencies that are not installed on this machine. */
async function wantedPackages(): Promise<Package[]> {
  const ask = async (program: string, ...args: string[]) =>
    (await execute(program, args, { maxBuffer: 1 << 26 })).stdout;
  const askApt = async () =>
    await ask("apt-get", "install", "--print-uris", "-qq", "-y", "--no-install-recommends", ...PROGRAMS);
  const lines = await askApt().catch(async (error: unknown) => {
    if (process.getuid?.() !== 0) throw error;
    await whenFree(() => run("apt-get", ["update", "-qq"]));
    return await askApt();
  });
  // 'URI' NAME_VERSION_ARCHITECTURE.deb SIZE HASH
  const programs = [...lines.matchAll(/^'\S+' ([^\s_]+)_([^\s_]+)_/gm)].map(
    ([, name = "", version = ""]) => `${name}=${decodeURIComponent(version)}`,
  );
  const kernel = /Depends: (linux-image-\d\S*)/.exec(await ask("apt-cache", "depends", KERNEL))?.[1];
  if (kernel === undefined) throw new Error(`This distribution has no package ${KERNEL}, whose kernel the guest runs.`);
  const shown = await ask("apt-cache", "show", "--no-all-versions", kernel, ...programs);
  const fieldOf = (text: string, field: string) => new RegExp(`^${field}: (\\S+)$`, "m").exec(text)?.[1] ?? "";
  return shown
    .split("\n\n")
    .filter((stanza) => stanza.includes("Package: "))
    .map((stanza) => ({
      name: `${fieldOf(stanza, "Package")}=${fieldOf(stanza, "Version")}`,
      sha256: fieldOf(stanza, "SHA256"),
    }));
}

async function unpack(packages: readonly string[], folder: string): Promise<void> {
  const downloads = await mkdtemp(path.join(tmpdir(), "sluice-guest-"));
  const unfinished = `${folder}.${process.pid}`;
  try {
    await whenFree(() => run("apt-get", ["download", "-qq", ...packages], { cwd: downloads }));
    await mkdir(unfinished, { recursive: true });
    for (const name of await readdir(downloads)) {
      if (!name.endsWith(".deb")) continue;
      const from = path.join(downloads, name);
      // Of the kernel's 400 MB, only what the guest loads.
      if (name.startsWith("linux-image-")) await run("sh", ["-c", UNPACK_KERNEL, "unpack", from, unfinished]);
      else await run("dpkg-deb", ["--extract", from, unfinished]);
    }
    await rm(folder, { recursive: true, force: true });
    await rename(unfinished, folder);
  } finally {
    for (const each of [downloads, unfinished]) await rm(each, { recursive: true, force: true });
  }
}

const UNPACK_KERNEL = `dpkg-deb --fsys-tarfile "$1" | tar --extract --directory "$2" --wildcards \
  './boot/vmlinuz-*' './lib/modules/*/kernel/fs/*' './lib/modules/*/kernel/net/9p/*' \
  './lib/modules/*/kernel/drivers/virtio/*'`;

/** The wanted modules after the modules that they depend on. A module that is not there is built into the kernel. */
async function modulesOf(folder: string): Promise<string[]> {
  const files = (await readdir(folder, { recursive: true })).filter((name) => /\.ko(\.\w+)?$/.test(name));
  const fileOf = new Map(files.map((name) => [path.basename(name).replace(/\.ko.*$/, ""), path.join(folder, name)]));
  const ordered = new Set<string>();
  const add = async (name: string): Promise<void> => {
    const file = fileOf.get(name);
    if (file === undefined || ordered.has(file)) return;
    const needs = /\0depends=([^\0]*)\0/.exec(`\0${contentOf(file, await readFile(file)).toString("latin1")}`)?.[1];
    for (const each of (needs ?? "").split(",")) await add(each);
    ordered.add(file);
  };
  for (const name of MODULES) await add(name);
  return [...ordered];
}

/** Newer kernels' packages hold compressed modules. */
function contentOf(file: string, content: Buffer): Buffer {
  if (!file.endsWith(".xz")) return content;
  return spawnSync("xz", ["-dc"], { input: content, maxBuffer: 1 << 26 }).stdout;
}
