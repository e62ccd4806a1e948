import type { DatasetKind, DatasetSource } from "#server/contracts/dataset.ts";

/** What a kind of dataset is called, and who mounts it how. */
export const KINDS: Record<DatasetKind, { name: string; means: string }> = {
  folder: {
    name: "Folder",
    means:
      "A folder of this machine, below those that the operator has set aside. Workspaces see it through a mount that " +
      "the kernel holds read-only; where this machine cannot isolate workspaces it is a link, and nothing holds it.",
  },
  nfs: {
    name: "NFS",
    means: "An export that the cluster's nodes can mount. Only workspaces on Kubernetes have it.",
  },
  s3: {
    name: "S3",
    means:
      "A bucket, by a CSI driver that the cluster has. Its keys stay in a secret of the cluster; what is written here is read by whoever may edit the dataset.",
  },
  volume: {
    name: "Persistent volume",
    means: "A claim of this name in the namespace of each team that uses it. Only workspaces on Kubernetes have it.",
  },
};

/** Where it lies, in one line. */
export function placeOf(source: DatasetSource): string {
  if (source.kind === "folder") return source.path;
  if (source.kind === "nfs") return `${source.server}:${source.path}`;
  if (source.kind === "volume") return source.claim;
  const attributes = Object.entries(source.attributes).map(([name, value]) => `${name}=${value}`);
  return [source.driver, ...attributes].join(" ");
}

/** `name=value` lines as a record; a line without `=` is a name without a value. */
export function readAttributes(text: string): Record<string, string> {
  const lines = text.split("\n").map((line) => line.trim());
  return Object.fromEntries(
    lines
      .filter((line) => line !== "")
      .map((line) => {
        const [name = "", ...value] = line.split("=");
        return [name.trim(), value.join("=").trim()];
      }),
  );
}
