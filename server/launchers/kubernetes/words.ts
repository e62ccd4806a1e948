/** Parts of the sentences about what a cluster says. */

/** What people call a resource of the cluster. */
export function resourceName(name: string): string {
  const words: Record<string, string> = {
    cpu: "CPU",
    memory: "memory",
    "ephemeral-storage": "disk space",
    pods: "pods",
    storage: "storage",
  };
  const [prefix, bare] =
    name.startsWith("limits.") || name.startsWith("requests.") ? name.split(/\.(.*)/s) : [undefined, name];
  const word = words[bare ?? name] ?? name;
  return prefix === "limits" ? `${word} (limit)` : word;
}

/** Without what repeats or only a developer reads, and without a full stop. */
export function firstSentence(text: string): string {
  const [first = ""] = text.trim().split(/(?<=[^.])\.\s|\n/);
  return first.replace(/\.$/, "").slice(0, 300);
}
