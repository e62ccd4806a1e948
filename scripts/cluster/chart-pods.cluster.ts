/** The chart's own pods: on which nodes they run, whom they let in, and which of the installation's keys they are given. */
import type { KubernetesObject, V1NetworkPolicy, V1PodSpec, V1PodTemplateSpec } from "@kubernetes/client-node";
import { expect, it } from "vitest";
import { isTaken, template, values } from "#scripts/cluster/chart.ts";
import { testCluster } from "#server/launchers/kubernetes/testing.ts";

const cluster = testCluster();
const INSTANCE = "app.kubernetes.io/instance";
const COMPONENT = "app.kubernetes.io/component";
const whole = { ...values, metrics: {}, database: {}, postgres: { enabled: true } };

/** The pods that the chart makes, by their component. */
function podsOf(made: KubernetesObject[]): Record<string, V1PodSpec> {
  const templates = made.flatMap(
    (object) => (object as { spec?: { template?: V1PodTemplateSpec } }).spec?.template ?? [],
  );
  const pods: Record<string, V1PodSpec> = {};
  for (const { metadata, spec } of templates) pods[metadata?.labels?.[COMPONENT] ?? ""] = spec ?? { containers: [] };
  return pods;
}

it("runs the control plane on the nodes that the values name, each part on its own where it says so, and gpud on others", async () => {
  const infrastructure = { nodeSelector: { role: "infrastructure" }, tolerations: [{ key: "infrastructure" }] };
  const affinity = { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } };
  const made = await template(cluster, {
    ...whole,
    placement: { ...infrastructure, priorityClassName: "platform" },
    broker: { placement: { priorityClassName: "higher", affinity } },
    postgres: { enabled: true, placement: { nodeSelector: { disk: "local" }, tolerations: [] } },
    gpud: { nodeSelector: { "sluice.dev/gpu-host": null, gpu: "yes" }, priorityClassName: "gpus", affinity },
  });
  const placed = Object.entries(podsOf(made)).map(([component, pod]) => {
    const { nodeSelector, tolerations, priorityClassName } = pod;
    return [component, { nodeSelector, tolerations, priorityClassName, affinity: pod.affinity }];
  });
  const common = { ...infrastructure, priorityClassName: "platform" };
  expect(Object.fromEntries(placed)).toEqual({
    ...{ portal: common, gateway: common, migrate: common },
    broker: { ...infrastructure, priorityClassName: "higher", affinity },
    postgres: { nodeSelector: { disk: "local" }, priorityClassName: "platform" },
    gpud: { nodeSelector: { gpu: "yes" }, tolerations: [], priorityClassName: "gpus", affinity },
  });
  await expect(template(cluster, { ...whole, placement: { nodeName: "one" } })).rejects.toThrow("nodeName");
}, 400_000);

it("spreads the replicas of one version over nodes where there are several", async () => {
  const spread = async (given: object) =>
    Object.entries(podsOf(await template(cluster, given))).map(([component, pod]) => [
      component,
      (pod.topologySpreadConstraints ?? []).map(({ topologyKey, whenUnsatisfiable, labelSelector, matchLabelKeys }) => {
        const selected = labelSelector?.matchLabels?.[COMPONENT];
        return [topologyKey, whenUnsatisfiable, selected, ...(matchLabelKeys ?? [])].join(" ");
      }),
    ]);
  const over = (component: string, ...keys: string[]) => [
    component,
    keys.map((key) => `${key} ScheduleAnyway ${component} pod-template-hash`),
  ];
  const servers = ["broker", "gateway", "portal"];
  const single = ["gpud", "migrate", "postgres"].map((component) => [component, []]);
  const [node, zone] = ["kubernetes.io/hostname", "topology.kubernetes.io/zone"];
  expect((await spread(whole)).sort()).toEqual([...servers.map((one) => over(one, node)), ...single].sort());
  const zones = await spread({ ...whole, placement: { spreadOver: [node, zone] } });
  expect(zones.sort()).toEqual([...servers.map((one) => over(one, node, zone)), ...single].sort());
  expect((await spread({ ...whole, placement: { spreadOver: [] } })).flatMap(([, constraints]) => constraints)).toEqual(
    [],
  );
}, 400_000);

const labelsOf = (component: string) => ({ [INSTANCE]: "sluice", [COMPONENT]: component });

/** Who reaches which port of each of the chart's pods, by its policies: `anybody`, or components of the chart. */
function letIn(made: KubernetesObject[]): Record<string, string[]> {
  const policies = made.filter(({ kind }) => kind === "NetworkPolicy") as V1NetworkPolicy[];
  const name = (labels: Record<string, string> = {}) => {
    return labels[INSTANCE] === "sluice" ? (labels[COMPONENT] ?? "anybody") : "anybody";
  };
  const rows = policies.map(({ spec }) => {
    expect(spec?.policyTypes).toEqual(["Ingress"]);
    const rules = (spec?.ingress ?? []).flatMap(({ ports, _from }) => {
      const who =
        _from === undefined || _from.length === 0
          ? ["anybody"]
          : _from.map(({ podSelector }) => name(podSelector?.matchLabels));
      return who.flatMap((one) => (ports ?? [{ port: "any" }]).map(({ port }) => `${one} ${port}`));
    });
    return [name(spec?.podSelector?.matchLabels), rules.sort()] as const;
  });
  return Object.fromEntries(rows);
}

it("lets anybody in to the servers on their ports, and to the trial's database nobody but the control plane", async () => {
  const controlPlane = ["broker", "gateway", "migrate", "portal"].map((component) => `${component} 5432`);
  const made = await template(cluster, { ...whole, gpud: { port: 3011 } });
  expect(letIn(made)).toEqual({
    ...{ portal: ["anybody 3000"], gateway: ["anybody 3002"], migrate: [] },
    broker: ["anybody 3001", "anybody 3003"],
    ...{ gpud: ["anybody 3011", "gpud any"], postgres: controlPlane },
  });
  // One for each pod that the chart makes, and each port that they have.
  const pods = podsOf(made);
  expect(Object.keys(letIn(made)).sort()).toEqual(Object.keys(pods).sort());
  for (const [component, { containers }] of Object.entries(pods))
    for (const { containerPort } of containers.flatMap(({ ports }) => ports ?? []))
      expect(letIn(made)[component]?.join()).toContain(` ${containerPort}`);
  const internalFrom = [{ podSelector: { matchLabels: labelsOf("gateway") } }];
  const closed = letIn(await template(cluster, { ...whole, networkPolicy: { internalFrom } }));
  expect(closed.broker).toEqual(["anybody 3001", "gateway 3003"]);
  const outside = letIn(await template(cluster, { ...values, metrics: {}, gpud: { enabled: false } }));
  expect(Object.keys(outside).sort()).toEqual(["broker", "gateway", "migrate", "portal"]);
  expect(letIn(await template(cluster, { ...whole, networkPolicy: { enabled: false } }))).toEqual({});
}, 400_000);

it("gives each process the keys that it uses, and who waits for the database its address alone", async () => {
  const pods = podsOf(await template(cluster, { ...whole, admin: { existingSecret: "first" } }));
  const secrets = ({ initContainers = [], containers }: V1PodSpec) =>
    [...initContainers, ...containers].map(({ name, env = [] }) => {
      const refs = env.map(({ valueFrom }) => valueFrom?.secretKeyRef);
      return [name, ...refs.flatMap((one) => (one === undefined ? [] : [`${one.name}/${one.key}`])).sort()].join(" ");
    });
  const url = "sluice-postgres/url";
  const wait = `wait-for-database ${url}`;
  const oidc = "sluice-oidc/client-id sluice-oidc/client-secret";
  expect(Object.fromEntries(Object.entries(pods).map(([component, pod]) => [component, secrets(pod)]))).toEqual({
    portal: [wait, `portal sluice-keys/auth-secret sluice-keys/secrets-key ${oidc} ${url}`],
    broker: [wait, `broker sluice-keys/secrets-key sluice-keys/signing-key ${url}`],
    gateway: [wait, `gateway ${url}`],
    migrate: [`migrate first/email first/password ${url}`],
    ...{ gpud: ["gpud"], postgres: ["postgres sluice-postgres/password"] },
  });
  const names = (pod?: V1PodSpec) => pod?.initContainers?.flatMap(({ env = [] }) => env.map(({ name }) => name));
  for (const component of ["portal", "broker", "gateway"])
    expect(names(pods[component])).toEqual(["DATABASE_URL", "NODE_EXTRA_CA_CERTS"]);
}, 400_000);

it("has all that in objects that the API server takes", async () => {
  const placement = {
    nodeSelector: { role: "infrastructure" },
    tolerations: [{ key: "infrastructure", operator: "Exists", effect: "NoSchedule" }],
    affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
    priorityClassName: "platform",
  };
  await isTaken(cluster, await template(cluster, { ...whole, placement }));
}, 400_000);
