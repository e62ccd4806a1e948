/** What an operator decides about workspaces on Kubernetes: a JSON file that SLUICE_KUBERNETES_SETTINGS names. */
import { readFile } from "node:fs/promises";
import { BlockList, isIP } from "node:net";
import { z } from "zod";
import { env } from "#server/env.ts";

/** `500m`, `2`, `4Gi`, as Kubernetes writes amounts. */
const quantity = z.string().regex(/^\d+(\.\d+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/, "an amount such as 500m, 2 or 4Gi");
const name = z.string().regex(/^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$/);
const words = z.record(z.string(), z.string());

/** Where cloud machines hand out their own credentials: most clouds', Alibaba's, Azure's, AWS's, Google's and Oracle's. */
const METADATA = [
  ...["169.254.169.254", "100.100.100.200", "168.63.129.16"],
  ...["fd00:ec2::254", "fd20:ce::254", "fd00:c1::a9fe:a9fe"],
];

/** What larger networks leave out for their sake; of link-local addresses all. */
const LEFT_OUT = [
  ...["169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32"],
  ...["fe80::/10", "fd00:ec2::/32", "fd20:ce::254/128", "fd00:c1::a9fe:a9fe/128"],
];

/** What of a network no pod reaches, whoever may reach the network. */
export function leftOutOf(cidr: string): string[] {
  const bits = (network: string) => Number(network.split("/")[1]);
  return LEFT_OUT.filter((network) => bits(cidr) < bits(network) && contains(cidr, network.split("/")[0] ?? ""));
}

const ports = z.array(z.int().min(1).max(65_535)).optional();

/** Some of the network: pods by their labels, or addresses; `ports` are theirs, not those of a service before them. */
const peer = z.union([
  z.strictObject({ namespace: words, pods: words.optional(), ports }),
  z.strictObject({
    addresses: z
      .string()
      .regex(/^[0-9a-fA-F.:]+\/\d+$/, "a network such as 10.0.0.0/8")
      .refine(isNetwork, "there is no such network")
      .refine((cidr) => !/\/0+$/.test(cidr) || ["0.0.0.0/0", "::/0"].includes(cidr), {
        error: "all addresses are written 0.0.0.0/0 and ::/0",
      })
      .refine((cidr) => !METADATA.some((address) => contains(cidr, address) && !isLeftOut(cidr, address)), {
        error: "it is where cloud machines hand out credentials; larger networks leave these addresses out",
      }),
    ports,
  }),
]);
export type Peer = z.infer<typeof peer>;

/** Where most clusters answer for names. */
const KUBE_DNS: Peer = {
  namespace: { "kubernetes.io/metadata.name": "kube-system" },
  pods: { "k8s-app": "kube-dns" },
};

const size = z.strictObject({
  cpu: z.strictObject({ request: quantity, limit: quantity }),
  memory: z.strictObject({ request: quantity, limit: quantity }),
  nodeSelector: words.default({}),
  tolerations: z
    .array(
      z.strictObject({
        key: z.string().optional(),
        operator: z.enum(["Exists", "Equal"]).default("Equal"),
        value: z.string().optional(),
        effect: z.enum(["NoSchedule", "PreferNoSchedule", "NoExecute"]).optional(),
      }),
    )
    .default([]),
  priorityClass: name.optional(),
  runtimeClass: name.optional(),
});
export type Size = z.infer<typeof size>;

/** Pods that ask for a GPU by a label. */
const pods = z.strictObject({
  /** Holds the client libraries and the `sluice` command; copied into each such pod. */
  image: z.string().min(1),
  pull: z.enum(["IfNotPresent", "Always", "Never"]).default("IfNotPresent"),
  /** Names of secrets of its registry, copied from `imagePullSecretsNamespace` into the namespaces of such pods. */
  imagePullSecrets: z.array(name).default([]),
  /** Whom the tokens of their accounts are for. */
  audience: z.string().min(1).default("sluice"),
  /** The GPU type of those that name none. */
  gpuType: z.string().min(1).max(32).optional(),
  /** For which team a namespace's pods borrow, and who answers for them; the first is taken when a pod names no team. */
  namespaces: z
    .record(name, z.array(z.strictObject({ team: z.string().min(1), person: z.email() })).min(1))
    .default({}),
});
export type PodSettings = z.infer<typeof pods>;

/** The gpuds that run in this cluster. */
const gpuServers = z.strictObject({
  namespace: name,
  /** With a token of this account they join the pool. */
  account: name,
  audience: z.string().min(1).default("sluice"),
  /** Their DaemonSet, whose pods are replaced node by node; without it an operator does that. */
  daemonSet: name.optional(),
  /** So long an update waits for who holds a GPU of a server; then they are told, with as much notice as `moveSeconds`. */
  updateAfterSeconds: z.int().min(0).max(31_536_000).default(14_400),
  /** The same where their node is cordoned; without it who holds a GPU there may go on to the end. */
  cordonAfterSeconds: z.int().min(0).max(31_536_000).optional(),
});

const fields = z.strictObject({
  /** Without it: the account of the pod that the broker runs in. */
  kubeconfig: z.string().min(1).optional(),
  /** A team's namespace is `<prefix>-<team id>`. */
  namespacePrefix: z
    .string()
    .regex(/^[a-z][a-z0-9-]{0,20}$/)
    .default("sluice"),
  /** The catalogue's words, each with the image that it is here. */
  environments: z.record(
    z.string(),
    z.strictObject({
      image: z.string().min(1),
      size: z.string(),
      pull: z.enum(["IfNotPresent", "Always", "Never"]).default("IfNotPresent"),
    }),
  ),
  sizes: z.record(z.string(), size),
  /** The most that one workspace can have, as the nodes are; without it only the portal's policy bounds sizes. */
  largest: z.strictObject({ cpu: quantity, memory: quantity }).optional(),
  home: z.strictObject({ size: quantity, storageClass: z.string().optional() }),
  /** Names of secrets in the teams' namespaces, or in that of `imagePullSecretsNamespace`. */
  imagePullSecrets: z.array(name).default([]),
  /** From here they, and those of `pods`, are copied to where the pods are; without it somebody else puts them there. */
  imagePullSecretsNamespace: name.optional(),
  team: z.strictObject({
    /** ResourceQuota of each team, e.g. `{"limits.cpu": "64"}`. */
    quota: z.record(z.string(), quantity).default({}),
  }),
  network: z.strictObject({
    /** Who reaches workspaces: gateway, portal and broker. */
    from: z.array(peer).min(1),
    /** What workspaces reach, besides names (DNS): broker, GPU servers, package indexes. */
    to: z.array(peer),
    /** Whom they ask for names, by UDP and TCP; on port 53, where a peer has no `ports` of its own. */
    dns: z.array(peer).default([KUBE_DNS]),
  }),
  /** PEM: who vouches for the broker's certificate, where that is nobody whom the world knows. */
  certificateAuthority: z
    .string()
    .regex(/^-----BEGIN CERTIFICATE-----/, "a certificate (PEM)")
    .optional(),
  gpuServers: gpuServers.optional(),
  /** Pods that borrow by a label; without it none do. */
  pods: pods.optional(),
  /** So long may a pod wait for a node, its volume and its image. */
  startSeconds: z.int().min(5).max(86_400).default(600),
  /** So many starts are under way at one time, those among them that wait for a node, their volume or their image. */
  startsAtOnce: z.int().min(1).max(1_000).default(32),
  /** So long before workspaces leave a node that is being emptied are their people told. */
  moveSeconds: z.int().min(0).max(86_400).default(600),
  /** So long may a node be silent before those of its workspaces that nobody reaches are started elsewhere. */
  lostNodeSeconds: z.int().min(0).max(86_400).default(300),
});

const schema = fields.superRefine((settings, context) => {
  for (const [environment, { size: named }] of Object.entries(settings.environments)) {
    if (named in settings.sizes) continue;
    context.addIssue({
      code: "custom",
      path: ["environments", environment, "size"],
      message: `there is no size "${named}"`,
    });
  }
});
export type KubernetesSettings = z.infer<typeof schema>;

/** What the chart takes of it as `workspaces`; the rest it knows itself. */
export const workspacesValues = fields
  .omit({ kubeconfig: true, imagePullSecretsNamespace: true, pods: true })
  .extend({ network: fields.shape.network.omit({ from: true }) });
export type KubernetesSettingsInput = z.input<typeof schema>;

/** Checks settings; throws one error that names everything wrong. */
export function parseSettings(input: unknown): KubernetesSettings {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map((issue) => `  ${issue.path.join(".")}: ${issue.message}`);
  throw new Error(`The Kubernetes settings are wrong:\n${lines.join("\n")}`);
}

/** The settings of this installation's cluster, read anew; undefined where it has none. */
export async function clusterSettings(): Promise<KubernetesSettings | undefined> {
  const { SLUICE_KUBERNETES_SETTINGS: file } = env();
  if (file === undefined) return undefined;
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    throw new Error(`SLUICE_KUBERNETES_SETTINGS: ${file} cannot be read.`, { cause: error });
  });
  return parseSettings(JSON.parse(text));
}

function isNetwork(cidr: string): boolean {
  const [base = "", bits = ""] = cidr.split("/");
  return isIP(base) !== 0 && Number(bits) <= (isIP(base) === 4 ? 32 : 128);
}

function isLeftOut(cidr: string, address: string): boolean {
  return leftOutOf(cidr).some((network) => contains(network, address));
}

/** Whether an address lies in a network. */
export function contains(cidr: string, address: string): boolean {
  const [base = "", bits = ""] = cidr.split("/");
  const family = isIP(base);
  if (!isNetwork(cidr) || isIP(address) !== family) return false;
  const list = new BlockList();
  list.addSubnet(base, Number(bits), family === 4 ? "ipv4" : "ipv6");
  return list.check(address, family === 4 ? "ipv4" : "ipv6");
}
