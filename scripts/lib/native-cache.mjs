// Plain JavaScript: `bootstrap.mjs` needs it before there are any packages.
//
// Compiled Rust is kept outside the checkout. Cargo decides by file times whether a crate is fresh, and in a fresh
// clone every file is new. So the times of the sources are kept beside what was compiled from them, under their hashes:
// a file whose content is known gets its time back, and cargo compiles only the crates whose sources differ.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import { keepFolder, takeFolder } from "./cache.mjs";

const KIND = "cargo";
/** Beside what was compiled: `{ [file]: { hash, seconds } }` of the sources. */
const SOURCES = "sluice-sources.json";

const releaseFolder = (root) => path.join(root, "native", "target", "release");

/** The compiler, its settings and the versions of the packages: none of it changes with our own sources. */
function keyOf(root) {
  const compiler = spawnSync("rustc", ["-vV"], { encoding: "utf8" });
  if (compiler.status !== 0) return undefined;
  const hash = createHash("sha256").update(compiler.stdout);
  for (const name of ["Cargo.lock", "Cargo.toml", ".cargo/config.toml"]) {
    const file = path.join(root, "native", name);
    hash.update("\0").update(existsSync(file) ? readFileSync(file) : "");
  }
  for (const name of ["RUSTFLAGS", "CARGO_TARGET_DIR"]) hash.update("\0").update(process.env[name] ?? "");
  return hash.digest("hex").slice(0, 16);
}

/** Every file of `native/` but what cargo made: its path there, content hash and time. */
function sources(root) {
  const native = path.join(root, "native");
  const files = readdirSync(native, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(native, path.join(entry.parentPath ?? entry.path, entry.name)))
    .filter((file) => !file.startsWith("target/"));
  const known = {};
  for (const file of files.sort()) {
    const whole = path.join(native, file);
    known[file] = {
      hash: createHash("sha256").update(readFileSync(whole)).digest("hex"),
      seconds: statSync(whole).mtimeMs / 1000,
    };
  }
  return known;
}

const contentOf = (known) => JSON.stringify(Object.entries(known).map(([file, { hash }]) => [file, hash]));

/** Brings compiled Rust from the cache into a checkout that has none. A missing cache only costs time. */
export function restoreNativeBuild(root) {
  const release = releaseFolder(root);
  if (existsSync(release)) return;
  const key = keyOf(root);
  if (key === undefined || !takeFolder(KIND, key, release)) return;
  const now = new Date();
  const kept = JSON.parse(readFileSync(path.join(release, SOURCES), "utf8"));
  for (const [file, { hash }] of Object.entries(sources(root))) {
    const same = kept[file]?.hash === hash;
    // Later than all that is kept, also when this clone is older.
    utimesSync(path.join(root, "native", file), now, same ? kept[file].seconds : now);
  }
  // Another checkout's: what they stand for is asked of cargo again.
  for (const name of ["sluice-stamp", "sluice-test-stamp"]) rmSync(path.join(release, name), { force: true });
}

/** Keeps what cargo compiled here for other checkouts. `what` names how much of it there is, such as `tests`. */
export function keepNativeBuild(root, what) {
  const release = releaseFolder(root);
  const key = keyOf(root);
  if (key === undefined || !existsSync(path.join(release, ".fingerprint"))) return;
  const known = sources(root);
  const file = path.join(release, SOURCES);
  const content = createHash("sha256").update(contentOf(known)).update(what).digest("hex");
  const marker = path.join(release, `sluice-kept-${what}`);
  if (existsSync(marker) && readFileSync(marker, "utf8") === content) return;
  writeFileSync(file, JSON.stringify(known));
  writeFileSync(marker, content);
  keepFolder(KIND, key, release);
}
