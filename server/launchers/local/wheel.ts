/** Where start-up leaves the `sluice-gpu` wheel, for the processes that build environments with it. */
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";

/** `<state>/wheels`: a folder for each build, and a stamp that names the newest by the fingerprint of its sources. */
export function wheelPlaces(stateDir: string, fingerprint: string): { stamp: string; folder: string } {
  const wheels = path.join(stateDir, "wheels");
  return { stamp: path.join(wheels, "stamp"), folder: path.join(wheels, fingerprint.slice(0, 16)) };
}

/** The wheel in the folder of a build; undefined when there is none. */
export async function wheelIn(folder: string): Promise<string | undefined> {
  const names = await readdir(folder).catch(() => []);
  const name = names.find((each) => each.endsWith(".whl"));
  return name === undefined ? undefined : path.join(folder, name);
}

/** The newest wheel of this installation; undefined before the first is built. */
export async function builtWheel(stateDir: string): Promise<string | undefined> {
  const { stamp } = wheelPlaces(stateDir, "");
  const fingerprint = await readFile(stamp, "utf8").catch(() => "");
  return fingerprint === "" ? undefined : await wheelIn(wheelPlaces(stateDir, fingerprint).folder);
}
