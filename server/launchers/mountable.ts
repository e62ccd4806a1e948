/** Which launcher mounts which kind of dataset. */
import type { DatasetKind } from "#server/contracts/dataset.ts";

const MOUNTED: Record<string, readonly DatasetKind[]> = {
  local: ["folder"],
  kubernetes: ["nfs", "s3", "volume"],
};

const WORDS: Record<DatasetKind, string> = {
  folder: "a folder of one machine",
  nfs: "an NFS export",
  s3: "an S3 bucket",
  volume: "a persistent volume of a cluster",
};

/** Why a launcher cannot mount a dataset, and which one can; undefined when it can. */
export function unmountable(launcher: string, { name, kind }: { name: string; kind: DatasetKind }): string | undefined {
  if (MOUNTED[launcher]?.includes(kind)) return undefined;
  const able = Object.keys(MOUNTED).filter((each) => MOUNTED[each]?.includes(kind));
  return `${name} is ${WORDS[kind]}: the launcher ${launcher} cannot mount it, ${able.join(" and ")} can.`;
}
