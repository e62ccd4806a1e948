/**
 * Locks what somebody has proposed: the packages of an environment that comes with this installation and some more, as
 * exact versions with hashes. Only wheels are taken, so that no package's build program runs here.
 */
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, mkdir, mkdtemp, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { runConfined } from "./confined.ts";
import {
  basePython,
  definitionSchema,
  type EnvironmentDefinition,
  findPython,
  type PrepareOptions,
  proposedDefinition,
  readDefinition,
  toolsOf,
} from "./environment.ts";
import { findUv } from "./uv.ts";

export type WantedDefinition = {
  name: string;
  title: string;
  description: string;
  /** An environment that comes with this installation. */
  base: string;
  /** `3.11`; undefined: what the base takes here. */
  python: string | undefined;
  /** pip's requirements, one a line: names with versions, no addresses. */
  requirements: string;
};

/** A definition without a place: its text makes the same folder anywhere. */
export type LockedDefinition = { word: string; version: string; lock: string; definition: EnvironmentDefinition };

/** What the base brings that is no package of an index, such as a wheel of our own recipe. */
type Base = { definition: EnvironmentDefinition; folder: string };

/** Resolves the packages for this machine's Python. Throws with uv's own words when they do not fit together. */
export async function lockDefinition(wanted: WantedDefinition, options: PrepareOptions): Promise<LockedDefinition> {
  const base = await baseOf(wanted.base, options.stateDir);
  const uv = await findUv(options.stateDir, options.onLine);
  const python = await findPython(uv, wanted.python === undefined ? base.definition.python : `==${wanted.python}.*`);
  options.onLine(`Locking for Python ${python.version}`);
  await mkdir(path.join(options.stateDir, "definitions"), { recursive: true, mode: 0o700 });
  const folder = await mkdtemp(path.join(options.stateDir, "definitions", ".locking-"));
  try {
    const own = await readFile(path.join(base.folder, "requirements.in"), "utf8");
    await writeFile(path.join(folder, "requirements.in"), `${own}\n${wanted.requirements}\n`);
    await copyFile(path.join(base.folder, "excludes.txt"), path.join(folder, "excludes.txt"));
    const interpreter = basePython(python);
    const tools = { ...options, reads: toolsOf({ uv, python }), python: interpreter, writes: folder };
    await runConfined([uv, ...compile(folder, interpreter)], tools);
    const lock = await readLock(path.join(folder, "requirements.lock"));
    const [major = "", minor = ""] = python.version.split(".");
    const { name, title, description } = wanted;
    const definition = { ...base.definition, title, description, python: `==${major}.${minor}.*` };
    const version = createHash("sha256")
      .update(JSON.stringify([definition, lock]))
      .digest("hex")
      .slice(0, 12);
    const word = `${name}--${version}`;
    return { word, version, lock, definition: { ...definition, name: word } };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Of a version that was locked here, without the definition's own shape, which only launchers read. */
export type KeptDefinition = { word: string; lock: string; base: string; spec: unknown };

/** Lays a locked definition where builds find it; what is there already stays as it is. */
export async function layDefinition({ word, lock, base, spec }: KeptDefinition, stateDir: string): Promise<void> {
  const { definition } = z.object({ definition: definitionSchema }).parse(spec);
  const target = proposedDefinition(stateDir, word);
  if ((await readDefinition(word, stateDir)) !== undefined) return;
  const { folder: from } = await baseOf(base, stateDir);
  await mkdir(path.dirname(target), { recursive: true, mode: 0o700 });
  const folder = await mkdtemp(path.join(path.dirname(target), ".laying-"));
  await writeFile(path.join(folder, definition.requirements), lock);
  if (definition.labSettings !== undefined) {
    await copyFile(path.join(from, definition.labSettings), path.join(folder, definition.labSettings));
  }
  await writeFile(path.join(folder, "environment.json"), `${JSON.stringify(definition, null, 2)}\n`);
  await rename(folder, target).catch(async (error: unknown) => {
    await rm(folder, { recursive: true, force: true });
    // Somebody else was quicker.
    if ((await readDefinition(word, stateDir)) === undefined) throw error;
  });
}

async function baseOf(name: string, stateDir: string): Promise<Base> {
  const found = await readDefinition(name, stateDir);
  if (found === undefined || found.proposed) throw new Error(`There is no environment "${name}" to begin with.`);
  if (found.definition.build !== undefined) {
    throw new Error(
      `${found.definition.title} holds a package of this installation's own, and nothing is built on it.`,
    );
  }
  return found;
}

const LONGEST_LOCK = 4_000_000;

/** What the installer wrote, which may be no link to a file of ours. */
async function readLock(name: string): Promise<string> {
  const file = await open(name, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    if ((await file.stat()).size > LONGEST_LOCK)
      throw new Error("Its lock is longer than 4 MB. Propose fewer packages.");
    return await file.readFile("utf8");
  } finally {
    await file.close();
  }
}

function compile(folder: string, python: string): string[] {
  return [
    ...["pip", "compile", path.join(folder, "requirements.in"), "--python", python],
    ...["--excludes", path.join(folder, "excludes.txt"), "--only-binary", ":all:", "--generate-hashes"],
    ...["--no-emit-index-url", "--no-header", "--no-annotate", "--quiet"],
    ...["-o", path.join(folder, "requirements.lock")],
  ];
}
