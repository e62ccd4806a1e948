/**
 * `deploy/images/<word>/Containerfile` is where an image's base, labels, user and entry stand: container engines build
 * from it, and without one the images here are made by what it says. Only instructions with one meaning for both are read.
 */
import { readFile } from "node:fs/promises";
import path from "node:path";

const FOLDER = "deploy/images";
/** What is installed upon the base, one Debian package a line. */
export const DEBIAN_PACKAGES = path.join(FOLDER, "debian.packages");

export type ImageConfig = {
  entrypoint: string[];
  env: Record<string, string>;
  user: string;
  folder: string;
  labels: Record<string, string>;
};

export type Containerfile = {
  file: string;
  text: string;
  /** The base that container engines take. */
  base: { name: string; digest: string };
  /** The layers upon it, by their files in the context. */
  layers: string[];
  config: ImageConfig;
};

/** What the build is told: `VERSION`, and for another base than the file's `BASE_NAME` and `BASE_DIGEST`. */
export type BuildArguments = { VERSION: string } & Record<string, string>;

export async function readContainerfile(root: string, word: string, told: BuildArguments): Promise<Containerfile> {
  return parseContainerfile(containerfile(root, word), await containerfileText(root, word), told);
}

/** Its text, for the tags of what is made by it. */
export async function containerfileText(root: string, word: string): Promise<string> {
  return await readFile(containerfile(root, word), "utf8");
}

const containerfile = (root: string, word: string) => path.join(root, FOLDER, word, "Containerfile");

/** Throws for what it does not know, with the line. */
export function parseContainerfile(file: string, text: string, told: BuildArguments): Containerfile {
  const values: Record<string, string | undefined> = { ...told };
  const filled = (line: string) =>
    line.replaceAll(/\$\{(\w+)\}/g, (_, name: string) => {
      const value = values[name];
      if (value === undefined) throw new Error(`${file}: no ARG ${name} with a value stands before "${line}".`);
      return value;
    });
  let base: Containerfile["base"] | undefined;
  const layers: string[] = [];
  const config: ImageConfig = { entrypoint: [], env: {}, user: "", folder: "/", labels: {} };
  for (const line of instructions(text)) {
    const [, word = "", rest = ""] = /^(\w+)\s+(\S.*)?$/.exec(line) ?? [];
    switch (word) {
      case "ARG": {
        const [name = "", value] = rest.split("=", 2);
        values[name] ??= value;
        break;
      }
      case "FROM": {
        const [, name, digest] = /^(\S+)@(sha256:[0-9a-f]{64})$/.exec(filled(rest)) ?? [];
        if (name === undefined || digest === undefined) throw new Error(`${file}: ${filled(rest)} has no digest.`);
        base = { name, digest };
        break;
      }
      case "ADD": {
        const [, layer] = /^(\S+\.tar) \/$/.exec(rest) ?? [];
        if (layer === undefined) throw new Error(`${file}: "${line}" adds no layer at /.`);
        layers.push(layer);
        break;
      }
      case "LABEL":
        Object.assign(config.labels, pairs(filled(rest)));
        break;
      case "ENV":
        Object.assign(config.env, pairs(filled(rest)));
        break;
      case "USER":
        config.user = rest;
        break;
      case "WORKDIR":
        config.folder = rest;
        break;
      case "ENTRYPOINT":
        config.entrypoint = JSON.parse(rest) as string[];
        break;
      case "COPY":
      case "RUN":
        // They install `debian.packages`; our own base has these.
        if (rest.includes("debian.packages")) break;
        throw new Error(`${file}: "${line}" would only happen in a container engine.`);
      default:
        throw new Error(`${file}: "${line}" is not understood here.`);
    }
  }
  if (base === undefined) throw new Error(`${file} has no FROM.`);
  return { file, text, base, layers, config };
}

/** Lines without comments, each whole. */
function instructions(text: string): string[] {
  const lines = text.split("\n").filter((line) => !line.startsWith("#"));
  return lines
    .join("\n")
    .replaceAll(/(?<!\s)\s*\\\n\s*/g, " ")
    .split("\n")
    .filter((line) => line.trim() !== "");
}

/** `name="value" other="value"`. */
function pairs(text: string): Record<string, string> {
  const found = text.matchAll(/(?<![\w.])([\w.]+)="([^"]*)"/g);
  return Object.fromEntries([...found].map(([, name = "", value = ""]): [string, string] => [name, value]));
}
