/** Boots the guest, whose root is this machine's root, and runs tests in it. */
import { chmod, copyFile, mkdir, mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import path from "node:path";
import type { GuestTools } from "#scripts/guest/tools.ts";
import { attempt, run } from "#scripts/lib/processes.ts";

const INIT = path.join(import.meta.dirname, "init.sh");
const START = path.join(import.meta.dirname, "start.sh");

/** Seconds. All tests, as root and as a user, took five to eight minutes on a busy machine. */
const LIMIT_S = 600;
const MEMORY_MIB = 3072;
/** The last line of start.sh. */
const ENDED = /^sluice-guest: ended with (\d+)$/;
const NOT_ENDED = 1;

type Options = { root: string; files: readonly string[]; say: (line: string) => void };

/** Runs the tests as root and as an ordinary user with delegated control groups. Returns 0 when all have passed. */
export async function runInGuest(tools: GuestTools, { root, files, say }: Options): Promise<number> {
  const scratch = await mkdtemp(path.join(tmpdir(), "sluice-guest-"));
  let status: number | undefined;
  try {
    const disk = await initialDisk(tools, scratch);
    const [program = "", ...args] = [...tools.qemu, ...machine(tools.kernel, disk, [root, process.execPath, ...files])];
    const problem = await attempt(() =>
      run(program, args, {
        env: tools.env,
        limit: LIMIT_S,
        onLine: (line) => {
          const ended = ENDED.exec(line.trim())?.[1];
          if (ended === undefined) say(line);
          else status = Number(ended);
        },
      }),
    );
    if (problem === undefined) return status ?? NOT_ENDED;
    say(problem.split("\n", 1)[0] ?? "");
    return NOT_ENDED;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

function machine(kernel: string, disk: string, words: readonly string[]): string[] {
  const strange = words.find((word) => !/^[\w./@+=:-]+$/.test(word));
  // The kernel splits its command line at spaces.
  if (strange !== undefined) throw new Error(`The guest takes no name with spaces or quotes: ${strange}`);
  return [
    ...["-machine", "q35", "-accel", "tcg,thread=multi,tb-size=512", "-cpu", "max", "-m", String(MEMORY_MIB)],
    ...["-smp", String(Math.min(2, availableParallelism()))],
    ...["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio"],
    // Nobody can write to this machine's files, not even root of the guest.
    ...["-fsdev", "local,id=host,path=/,security_model=none,readonly=on,multidevs=remap"],
    ...["-device", "virtio-9p-pci,fsdev=host,mount_tag=host"],
    ...["-kernel", kernel, "-initrd", disk, "-append"],
    `console=ttyS0 quiet panic=-1 mitigations=off random.trust_cpu=on -- ${[START, ...words].join(" ")}`,
  ];
}

/** The initial RAM disk: busybox, the modules and init.sh. */
async function initialDisk({ busybox, modules }: GuestTools, scratch: string): Promise<string> {
  const tree = path.join(scratch, "tree");
  await mkdir(path.join(tree, "modules"), { recursive: true });
  await copyFile(busybox, path.join(tree, "busybox"));
  await copyFile(INIT, path.join(tree, "init"));
  for (const name of ["busybox", "init"]) await chmod(path.join(tree, name), 0o755);
  for (const [place, file] of modules.entries()) {
    // Numbered: init.sh loads them in the order of their names.
    const name = `${String(place).padStart(2, "0")}-${path.basename(file)}`;
    await copyFile(file, path.join(tree, "modules", name));
  }
  const disk = path.join(scratch, "initrd");
  await run("sh", ["-c", `find . | "$1" cpio -o -H newc 2>/dev/null >"$2"`, "pack", busybox, disk], { cwd: tree });
  return disk;
}
