// Adds the optional packages of other platforms that a registry mirror may not serve, so that `npm ci` accepts
// the lock file everywhere. Run after every change of package-lock.json: node scripts/fix-lock.mjs
import fs from "node:fs";

const file = "package-lock.json";
const lock = JSON.parse(fs.readFileSync(file, "utf8"));
const packages = lock.packages;
const osByWord = {
  darwin: "darwin",
  win32: "win32",
  windows: "win32",
  linux: "linux",
  linuxmusl: "linux",
  android: "android",
  freebsd: "freebsd",
  openbsd: "openbsd",
  netbsd: "netbsd",
  sunos: "sunos",
  aix: "aix",
  openharmony: "openharmony",
};
const cpus = "arm64 x64 ia32 arm armv7 ppc64 ppc64le s390x riscv64 loong64 mips64el wasm32".split(" ");

/** Whether `name`, required from the package at `at`, is found by Node's resolution in the lock file. */
function resolved(at, name) {
  let dir = at;
  for (;;) {
    if (packages[`${dir ? `${dir}/` : ""}node_modules/${name}`]) return true;
    if (!dir) return false;
    const i = dir.lastIndexOf("/node_modules/");
    dir = i < 0 ? "" : dir.slice(0, i);
  }
}

for (const [at, entry] of Object.entries({ ...packages })) {
  for (const [name, range] of Object.entries(entry.optionalDependencies ?? {})) {
    if (resolved(at, name)) continue;
    const words = name.replace(/^@[^/]+\//, "").split(/[-.]/);
    const os = words.map((w) => osByWord[w]).find(Boolean);
    const cpu = words.find((w) => cpus.includes(w));
    packages[`node_modules/${name}`] = {
      version: range.replace(/^[\^~=v]+/, ""),
      ...(cpu ? { cpu: [cpu === "armv7" ? "arm" : cpu] } : {}),
      ...(entry.dev ? { dev: true } : {}),
      optional: true,
      ...(os ? { os: [os] } : {}),
    };
  }
}
lock.packages = Object.fromEntries(Object.entries(packages).sort(([a], [b]) => (a < b ? -1 : 1)));
fs.writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
