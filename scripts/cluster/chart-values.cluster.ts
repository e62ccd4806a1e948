/** What the chart makes of values that the installed one leaves out, and whether a real API server takes it. */
import { X509Certificate } from "node:crypto";
import path from "node:path";
import {
  dumpYaml,
  type KubernetesObject,
  type ResourceV1ResourceClaim,
  type V1ConfigMap,
  type V1DaemonSet,
  type V1Deployment,
  type V1Ingress,
  type V1MutatingWebhookConfiguration,
  type V1NetworkPolicyPeer,
  type V1Pod,
  type V1PodDisruptionBudget,
  type V1PodSpec,
  type V1PodTemplateSpec,
  type V1ResourceClaimTemplate,
  type V1Secret,
  type V1Service,
} from "@kubernetes/client-node";
import { expect, it, onTestFinished } from "vitest";
import { isTaken as isTakenBy, template as render, values } from "#scripts/cluster/chart.ts";
import { OPEN } from "#server/contracts/egress.ts";
import { networkPolicy } from "#server/launchers/kubernetes/objects.ts";
import { type KubernetesSettings, parseSettings } from "#server/launchers/kubernetes/settings.ts";
import { testCluster } from "#server/launchers/kubernetes/testing.ts";

const cluster = testCluster();
const POLL = { timeout: 120_000, interval: 200 };
const template = (given: object, ...more: string[]) => render(cluster, given, ...more);
const isTaken = (made: KubernetesObject[], namespace?: string) => isTakenBy(cluster, made, namespace);

/** The launcher's, as the broker reads them. */
function settingsOf(made: KubernetesObject[]): KubernetesSettings {
  const maps = made.filter(({ kind }) => kind === "ConfigMap") as V1ConfigMap[];
  const text = maps.flatMap(({ data }) => data?.["kubernetes.json"] ?? [])[0];
  return parseSettings(JSON.parse(text ?? "{}"));
}

it("makes ingress, budgets, monitor and dashboard as the values say, in objects that the API server takes", async () => {
  const [portal, notebooks] = ["https://sluice.example.com:8443", "https://notebooks.example.com:8443"];
  const gateway = { ...values.gateway, url: notebooks, service: { port: 8080 } };
  const made = await template({ ...values, portal: { url: portal }, gateway });
  const all = <T extends KubernetesObject>(kind: string) => made.filter((one) => one.kind === kind) as T[];
  const [ingress] = all<V1Ingress>("Ingress");
  // A port is no part of a host: the API server takes none.
  const hosts = ["sluice.example.com", "*.notebooks.example.com"];
  expect(ingress?.spec?.tls).toEqual([{ hosts, secretName: "sluice-tls" }]);
  const leads = (ingress?.spec?.rules ?? []).flatMap(({ host, http }) =>
    (http?.paths ?? []).map(({ path: prefix, backend: { service: wanted } }) => {
      const service = all<V1Service>("Service").find(({ metadata }) => metadata?.name === wanted?.name);
      const port = service?.spec?.ports?.find(({ name }) => name === wanted?.port?.name);
      return [`${host}${prefix}`, `${service?.metadata?.name}:${port?.port}`];
    }),
  );
  expect(Object.fromEntries(leads)).toEqual({
    "sluice.example.com/": "sluice-portal:80",
    "*.notebooks.example.com/": "sluice-gateway:8080",
  });
  const budgets = all<V1PodDisruptionBudget>("PodDisruptionBudget");
  expect(budgets.map(({ metadata }) => metadata?.name).sort()).toEqual([
    "sluice-broker",
    "sluice-gateway",
    "sluice-portal",
  ]);
  expect(all("StatefulSet")).toEqual([]);
  expect(settingsOf(made)).toMatchObject({ gpuServers: { daemonSet: "sluice-gpud", updateAfterSeconds: 60 } });
  const maps = all<V1ConfigMap>("ConfigMap").map(({ data }) => data ?? {});
  const dashboard = maps
    .flatMap((data) => Object.entries(data))
    .find(([name]) => name.endsWith(".json") && name !== "kubernetes.json");
  expect((JSON.parse(dashboard?.[1] ?? "{}") as { panels?: unknown[] }).panels?.length).toBeGreaterThan(3);
  const text = made.map((object) => dumpYaml(object)).join("\n---\n");
  expect(text).toContain("https://login.example.com/realms/lab");
  expect(all("ServiceMonitor")).toHaveLength(1);
  // A kind of an operator that this cluster does not have.
  await isTaken(made.filter(({ kind }) => kind !== "ServiceMonitor"));
}, 400_000);

it("has the secrets of the client's registry copied to pods that borrow, and asks nobody without the webhook", async () => {
  const pods = { imagePullSecrets: ["registry-d"], namespaces: { ml: [{ team: "vision", person: "a@example.com" }] } };
  const asked = { ...values, workspaces: {} };
  const on = settingsOf(await template({ ...asked, pods: { ...pods, enabled: true } }, "--namespace", "sluice"));
  expect([on.pods?.imagePullSecrets, on.imagePullSecretsNamespace]).toEqual([["registry-d"], "sluice"]);
  const off = settingsOf(await template({ ...asked, pods }));
  expect([off.pods, off.imagePullSecretsNamespace]).toEqual([undefined, undefined]);
}, 400_000);

it("takes each server's pod out of its service some seconds before its process ends, and gives it time for both", async () => {
  const deployments = (await template(values)).filter(({ kind }) => kind === "Deployment") as V1Deployment[];
  const times = deployments.map(({ metadata, spec }) => {
    const { terminationGracePeriodSeconds = 0, containers } = spec?.template.spec ?? { containers: [] };
    const paused = containers[0]?.lifecycle?.preStop?.sleep?.seconds ?? 0;
    return [metadata?.name, { paused, left: terminationGracePeriodSeconds - paused }];
  });
  expect(Object.fromEntries(times)).toEqual({
    "sluice-broker": { paused: 5, left: 15 },
    "sluice-gateway": { paused: 60, left: 15 },
    "sluice-portal": { paused: 5, left: 15 },
  });
}, 400_000);

it("names every pull secret in every pod, the trial's database and the migration among them", async () => {
  const made = await template({ ...values, database: {}, postgres: { enabled: true } });
  const pods = made.flatMap((object) => {
    const spec = (object as { spec?: { template?: V1PodTemplateSpec } }).spec?.template?.spec;
    return spec === undefined ? [] : [[object.metadata?.name, spec.imagePullSecrets]];
  });
  const both = [{ name: "registry-a" }, { name: "registry-b" }];
  const names = ["broker", "gateway", "gpud", "migrate-1", "portal", "postgres"].map((name) => `sluice-${name}`);
  expect(Object.fromEntries(pods)).toEqual(Object.fromEntries(names.map((name) => [name, both])));
}, 400_000);

it("lets workspaces reach broker and GPU servers on their ports and no database, and only Sluice's servers reach them", async () => {
  const database = { database: {}, postgres: { enabled: true } };
  const made = await template({ ...values, ...database, gpud: { port: 3011 } });
  const settings = settingsOf(made);
  expect(settings).toMatchObject({ imagePullSecrets: ["registry-c"], imagePullSecretsNamespace: "default" });
  const { ingress = [], egress = [] } = networkPolicy(settings, "team-1", OPEN).spec ?? {};
  /** The chart's pods that these select, by their component. */
  const selected = (peers: V1NetworkPolicyPeer[] = []) =>
    made.flatMap((object) => {
      const labels = (object as { spec?: { template?: V1PodTemplateSpec } }).spec?.template?.metadata?.labels;
      const matches = ({ namespaceSelector, podSelector }: V1NetworkPolicyPeer) =>
        namespaceSelector?.matchLabels?.["kubernetes.io/metadata.name"] === "default" &&
        Object.entries(podSelector?.matchLabels ?? {}).every(([name, value]) => labels?.[name] === value);
      return labels !== undefined && peers.some(matches) ? [labels["app.kubernetes.io/component"]] : [];
    });
  expect(ingress.map(({ _from }) => selected(_from).sort())).toEqual([["broker", "gateway", "portal"]]);
  const reached = egress.flatMap(({ to, ports }) =>
    selected(to).map((component) => `${component} ${ports?.map(({ port }) => String(port)).join(",")}`),
  );
  expect(reached.sort()).toEqual(["broker 3001", "gpud 3011"]);
}, 400_000);

it("lets workspaces ask whom the values name for names, else the cluster's own DNS", async () => {
  const kubeDns = { namespace: { "kubernetes.io/metadata.name": "kube-system" }, pods: { "k8s-app": "kube-dns" } };
  expect(settingsOf(await template(values)).network.dns).toEqual([kubeDns]);
  const dns = [
    { addresses: "169.254.20.10/32" },
    { namespace: { "kubernetes.io/metadata.name": "openshift-dns" }, ports: [5353] },
  ];
  const made = settingsOf(await template({ ...values, workspaces: { network: { dns } } }));
  expect(made.network.dns).toEqual(dns);
  expect(made.network.to).toContainEqual({ addresses: "0.0.0.0/0", ports: [443] });
}, 400_000);

/** Whom the settings have workspaces trust, and whom the cluster trusts at the broker's internal service. */
const authorities = (made: KubernetesObject[]) => {
  const { data } = made.find((one) => one.metadata?.name === "sluice-settings") as V1ConfigMap;
  return [data?.["ca.crt"], data?.["internal-ca.crt"]];
};
const pem = (made: KubernetesObject[], name: string, key: string) => {
  const secret = made.find((one) => one.kind === "Secret" && one.metadata?.name === name) as V1Secret;
  return Buffer.from(secret.data?.[key] ?? "", "base64").toString();
};
const secretsOf = (made: KubernetesObject[]) =>
  made.flatMap(({ kind, metadata }) => (kind === "Secret" ? (metadata?.name ?? "") : []));

/** Who asks the broker from inside the cluster alone: Prometheus, and the API server for its webhook. */
function askers(made: KubernetesObject[]) {
  const all = <T extends KubernetesObject>(kind: string) => made.filter((one) => one.kind === kind) as T[];
  const [hook] = all<V1MutatingWebhookConfiguration>("MutatingWebhookConfiguration");
  const [monitor] = all<Monitor>("ServiceMonitor");
  const { selector, endpoints } = monitor?.spec ?? { selector: { matchLabels: {} }, endpoints: [] };
  const selected = all<V1Service>("Service").filter((service) =>
    Object.entries(selector.matchLabels).every(([name, value]) => service.metadata?.labels?.[name] === value),
  );
  return { monitor, selected, endpoint: endpoints[0], configs: hook?.webhooks?.map((one) => one.clientConfig) };
}
type Monitor = KubernetesObject & {
  spec: {
    selector: { matchLabels: Record<string, string> };
    endpoints: { port: string; scheme: string; tlsConfig: { serverName: string; ca?: object } }[];
  };
};

it("has Prometheus and the API server ask the broker at a service of its own, by a name that its certificate has", async () => {
  const host = "sluice-internal.default.svc";
  const metrics = { serviceMonitor: { enabled: true, labels: { release: "prom" } } };
  // However the broker itself is reached, and whoever vouches for that.
  const known = { url: "https://broker.example.com:8443", tls: { existingSecret: "known" } };
  const service = { type: "LoadBalancer", port: 3003 };
  for (const broker of [{}, known, { ...known, service }]) {
    const made = await template({ ...values, metrics, broker, pods: { enabled: true } });
    const { monitor, selected, endpoint, configs } = askers(made);
    expect(monitor?.metadata?.labels).toMatchObject({ release: "prom" });
    const [internal, ...others] = selected;
    expect([internal?.metadata?.name, internal?.spec?.type, others]).toEqual(["sluice-internal", undefined, []]);
    expect(internal?.spec?.ports).toEqual([{ name: "internal", port: 3003, targetPort: "internal" }]);
    const main = made.find(({ kind, metadata }) => kind === "Service" && metadata?.name === "sluice-broker");
    expect((main as V1Service).spec?.ports?.map(({ name }) => name)).toEqual(["main"]);
    expect(endpoint).toMatchObject({ port: "internal", path: "/metrics", scheme: "https" });
    const ca = { configMap: { name: "sluice-settings", key: "internal-ca.crt" } };
    expect(endpoint?.tlsConfig).toEqual({ serverName: host, ca });
    const certificate = pem(made, "sluice-internal-tls", "tls.crt");
    expect(new X509Certificate(certificate).checkHost(host)).toBe(host);
    expect(authorities(made)[1]).toBe(certificate);
    const asked = { name: "sluice-internal", namespace: "default", port: 3003 };
    const config = {
      service: { ...asked, path: "/v1/kubernetes/admission" },
      caBundle: Buffer.from(certificate).toString("base64"),
    };
    expect(configs).toEqual([config, config]);
    await isTaken(made.filter(({ kind }) => kind !== "ServiceMonitor"));
  }
}, 400_000);

it("trusts whom the values name for the broker's certificates, and makes none of its own then", async () => {
  const certificate = (name: string) => `-----BEGIN CERTIFICATE-----\n${name}`;
  const own = await template(values);
  expect(authorities(own)[0]).toBe(pem(own, "sluice-broker-tls", "ca.crt"));
  const workspaces = { certificateAuthority: certificate("X") };
  const theirs = { broker: { tls: { existingSecret: "theirs" } }, workspaces };
  const trusting = await template({ ...values, ...theirs });
  expect(settingsOf(trusting)).toMatchObject(workspaces);
  expect(authorities(trusting)[0]).toBe(workspaces.certificateAuthority);
  expect(secretsOf(trusting)).not.toContain("sluice-broker-tls");
  const internal = (tls: object) => ({ broker: { ...theirs.broker, internal: { tls } }, pods: { enabled: true } });
  const existingSecret = "inner";
  const named = { existingSecret, certificateAuthority: certificate("Y") };
  for (const [tls, authority] of [
    [{ existingSecret }, workspaces.certificateAuthority],
    [named, named.certificateAuthority],
  ] as const) {
    const made = await template({ ...values, workspaces, ...internal(tls) });
    expect(authorities(made)).toEqual([workspaces.certificateAuthority, authority]);
    expect(askers(made).configs?.[0]?.caBundle).toBe(Buffer.from(authority).toString("base64"));
    expect(secretsOf(made)).not.toContain("sluice-internal-tls");
    const deployment = made.find(({ kind, metadata }) => kind === "Deployment" && metadata?.name === "sluice-broker");
    const volumes = (deployment as V1Deployment).spec?.template.spec?.volumes ?? [];
    expect(volumes.flatMap(({ secret }) => secret?.secretName ?? [])).toEqual(["theirs", "inner"]);
  }
  // The chart's own authority has not signed it either.
  const unknown = template({ ...values, broker: { internal: { tls: { existingSecret } } } });
  await expect(unknown).rejects.toThrow("broker.internal.tls.certificateAuthority says who has signed");
}, 400_000);

it("sends the broker what asks for a GPU by a label, each pod once", async () => {
  const made = await template({ ...values, metrics: {}, pods: { enabled: true } });
  const [hook] = made.filter(({ kind }) => kind?.startsWith("Mutating")) as V1MutatingWebhookConfiguration[];
  const sent = (labels: Record<string, string>) =>
    (hook?.webhooks ?? []).flatMap(({ name, objectSelector }) => {
      const holds = ({ key, operator }: { key: string; operator: string }) => key in labels === (operator === "Exists");
      return objectSelector?.matchExpressions?.every(holds) ? [name] : [];
    });
  expect(sent({ app: "train" })).toEqual([]);
  expect(sent({ "sluice.dev/gpu-type": "h200" })).toEqual([]);
  expect(sent({ "sluice.dev/gpu": "0.5" })).toEqual(["pods.sluice.dev"]);
  expect(sent({ "sluice.dev/gpu": "", "sluice.dev/gpu-memory": "4G" })).toEqual(["pods.sluice.dev"]);
  expect(sent({ "sluice.dev/gpu-memory": "4G" })).toEqual(["memory.pods.sluice.dev"]);
  await isTaken(made);
}, 400_000);

it("has gpud on its node's network where the values say so, and tells the node's address", async () => {
  const made = await template({ ...values, metrics: {}, gpud: { hostNetwork: true, port: 3011 } });
  const [gpud] = made.filter(({ kind }) => kind === "DaemonSet") as V1DaemonSet[];
  const pod = gpud?.spec?.template.spec;
  expect(pod).toMatchObject({ hostNetwork: true, dnsPolicy: "ClusterFirstWithHostNet" });
  expect(pod?.containers[0]?.args).toContain("--advertise=$(ADDRESS):3011");
  const env = pod?.containers[0]?.env?.find(({ name }) => name === "ADDRESS");
  expect(env?.valueFrom?.fieldRef?.fieldPath).toBe("status.hostIP");
  await isTaken(made);
}, 400_000);

it("has pods that the restricted standard takes, but gpud's, which wants a folder of its node and changes users", async () => {
  const made = await template({ ...values, metrics: {}, database: {}, postgres: { enabled: true } });
  const warnings = async (standard: string) => {
    const name = `${standard}-test`;
    const labels = { "pod-security.kubernetes.io/warn": standard };
    const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name, labels } };
    await cluster.objects.create(namespace);
    onTestFinished(async () => void (await cluster.objects.delete(namespace)));
    return await isTaken(made, name);
  };
  expect(await warnings("baseline")).toEqual([
    'Warning: would violate PodSecurity "baseline:latest": hostPath volumes (volume "state")',
  ]);
  const capabilities = 'container "gpud" must not include "SETGID", "SETUID" in securityContext.capabilities.add';
  expect(await warnings("restricted")).toEqual([expect.stringContaining(capabilities)]);
}, 400_000);

it("tells the portal where the gateway is inside the cluster", async () => {
  const made = await template({ ...values, metrics: {}, gateway: { ...values.gateway, service: { port: 8080 } } });
  const portal = made.find(({ kind, metadata }) => kind === "Deployment" && metadata?.name === "sluice-portal");
  const [container] = (portal as V1Deployment).spec?.template.spec?.containers ?? [];
  const value = "http://sluice-gateway.default.svc:8080";
  expect(container?.env).toContainEqual({ name: "SLUICE_GATEWAY_INTERNAL_URL", value });
}, 400_000);

it("makes the broker's certificate anew for another address, by the authority that everybody trusts", async () => {
  const name = "sluice-broker-tls";
  const tls = async (url?: string) => {
    const broker = url === undefined ? {} : { broker: { url } };
    const seeing = ["--namespace", "default", "--kubeconfig", cluster.kubeconfig, "--dry-run=server"];
    const made = await template({ ...values, metrics: {}, ...broker }, ...seeing);
    const secret = made.find(({ kind, metadata }) => kind === "Secret" && metadata?.name === name) as V1Secret;
    const pem = (key: string) => Buffer.from(secret.data?.[key] ?? "", "base64");
    return { secret, of: new X509Certificate(pem("tls.crt")), by: new X509Certificate(pem("ca.crt")) };
  };
  const first = await tls();
  const kept = { ...first.secret, metadata: { name, namespace: "default" } };
  onTestFinished(async () => void (await cluster.objects.delete(kept).catch(() => undefined)));
  // As charts made it that kept neither the authority's key nor for whom it is.
  const data = { ...first.secret.data };
  delete data["ca.key"];
  await cluster.objects.create({ ...kept, data });
  expect((await tls()).secret.data).toEqual(data);
  await expect(tls("https://broker.example.com")).rejects.toThrow("may not hold for broker.example.com (broker.url)");
  await cluster.objects.delete(kept);
  await cluster.objects.create({ ...first.secret, metadata: { ...first.secret.metadata, namespace: "default" } });
  expect((await tls()).secret.data).toEqual(first.secret.data);
  const service = "sluice-broker.default.svc";
  for (const [url, ...hosts] of [
    ["https://broker.example.com:3001", "broker.example.com", service],
    ["https://10.1.2.3", "10.1.2.3", service],
  ] as const) {
    const { secret, of, by } = await tls(url);
    expect(by.fingerprint256).toBe(first.by.fingerprint256);
    expect(of.verify(by.publicKey)).toBe(true);
    for (const host of hosts) expect(of.checkHost(host) ?? of.checkIP(host)).toBe(host);
    expect(secret.metadata?.annotations?.["sluice.dev/host"]).toBe(hosts[0]);
  }
}, 400_000);

it("claims devices by dynamic resource allocation in objects that the API server takes", async () => {
  const claim = { deviceClass: "gpu.example.com", count: 2 };
  const made = await template({ ...values, metrics: {}, gpud: { backend: "cuda", claim } });
  const [claimed] = made.filter(({ kind }) => kind === "ResourceClaimTemplate") as V1ResourceClaimTemplate[];
  expect(claimed?.spec.spec.devices?.requests).toEqual([
    { name: "gpus", exactly: { deviceClassName: "gpu.example.com", count: 2 } },
  ]);
  const [gpud] = made.filter(({ kind }) => kind === "DaemonSet") as V1DaemonSet[];
  const pod = gpud?.spec?.template.spec;
  expect(pod?.resourceClaims).toEqual([{ name: "gpus", resourceClaimTemplateName: claimed?.metadata?.name }]);
  expect(pod?.containers[0]?.resources?.claims).toEqual([{ name: "gpus" }]);
  await isTaken(made);
}, 400_000);

it("has the scheduler give gpud the devices of a driver's node, and nobody else while gpud has them", async () => {
  const driver = "gpu.example.com";
  const namespace = "claims-test";
  const of = <T extends KubernetesObject>(object: T) => ({ ...object, metadata: { ...object.metadata, namespace } });
  const claim = { deviceClass: driver, count: 2 };
  const stateDirectory = path.join(cluster.folder, "claims");
  const chart = await template({ ...values, metrics: {}, gpud: { backend: "cuda", claim, stateDirectory } });
  const [gpud] = chart.filter(({ kind }) => kind === "DaemonSet") as V1DaemonSet[];
  const pod = gpud?.spec?.template;
  const [claimed] = chart.filter(({ kind }) => kind === "ResourceClaimTemplate");
  if (claimed === undefined || pod?.spec === undefined) throw new Error("none");
  const nodeName = "node-1";
  const one = { requests: [{ name: "one", exactly: { deviceClassName: driver, count: 1 } }] };
  const borrower = (name: string, spec: V1PodSpec): KubernetesObject & { spec: V1PodSpec } => ({
    ...{ apiVersion: "v1", kind: "Pod", metadata: { name, namespace } },
    spec: { ...spec, serviceAccountName: "default", nodeSelector: {} },
  });
  const wide: (KubernetesObject & Record<string, unknown>)[] = [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
    {
      ...{ apiVersion: "resource.k8s.io/v1", kind: "DeviceClass", metadata: { name: driver } },
      spec: { selectors: [{ cel: { expression: `device.driver == "${driver}"` } }] },
    },
    // As a driver tells what its node has.
    {
      ...{ apiVersion: "resource.k8s.io/v1", kind: "ResourceSlice", metadata: { name: "claims-test" } },
      spec: {
        ...{ driver, nodeName },
        pool: { name: nodeName, generation: 1, resourceSliceCount: 1 },
        devices: [{ name: "gpu-0" }, { name: "gpu-1" }],
      },
    },
  ];
  onTestFinished(async () => {
    for (const object of wide) await cluster.objects.delete(object);
  });
  for (const object of wide) await cluster.objects.create(object);
  const other = {
    ...{ apiVersion: "resource.k8s.io/v1", kind: "ResourceClaimTemplate", metadata: { name: "other", namespace } },
    spec: { spec: { devices: one } },
  };
  for (const object of [of(claimed), other, borrower("gpud", pod.spec)]) await cluster.objects.create(object);
  const given = async (name: string) => {
    const claims = await cluster.objects.list<ResourceV1ResourceClaim>(
      "resource.k8s.io/v1",
      "ResourceClaim",
      namespace,
    );
    const ours = claims.items.filter(({ metadata }) => metadata?.name?.startsWith(`${name}-`));
    return ours.flatMap(({ status }) => status?.allocation?.devices?.results?.map(({ device }) => device) ?? []).sort();
  };
  await expect.poll(() => given("gpud"), POLL).toEqual(["gpu-0", "gpu-1"]);
  const main = { name: "main", image: "localhost/pause:1", resources: { claims: [{ name: "one" }] } };
  const stranger = borrower("stranger", {
    ...{ containers: [main], resourceClaims: [{ name: "one", resourceClaimTemplateName: "other" }] },
  });
  await cluster.objects.create(stranger);
  const why = async () => {
    const seen = await cluster.objects.read<V1Pod>({ ...stranger, metadata: { name: "stranger", namespace } });
    return seen.status?.conditions?.map(({ message }) => message).join();
  };
  await expect.poll(why, POLL).toContain("cannot allocate all claims");
  await cluster.objects.delete(borrower("gpud", pod.spec), undefined, undefined, 0);
  await expect.poll(() => given("stranger"), POLL).toHaveLength(1);
}, 400_000);

it("refuses values that it does not know", async () => {
  await expect(template({ ...values, portall: {} })).rejects.toThrow("'portall' not allowed");
  await expect(template({ ...values, gpud: { updateAfterSeconds: -1 } })).rejects.toThrow("updateAfterSeconds");
  await expect(template({ ...values, oidc: { issuer: "login.example.com" } })).rejects.toThrow("issuer");
  await expect(template({ ...values, oidc: { trustEmail: "yes" } })).rejects.toThrow("trustEmail");
  const host = "notebooks.example.com:8443";
  await expect(template({ ...values, gateway: { ...values.gateway, host } })).rejects.toThrow("host");
  const workspaces = (more: object) => template({ ...values, workspaces: more });
  await expect(workspaces({ startSecond: 5 })).rejects.toThrow("'startSecond' not allowed");
  await expect(workspaces({ home: { size: "much" } })).rejects.toThrow(/home.size/);
  // As `--reuse-values` has it after a release whose chart did not know them.
  await expect(template({ ...values, placement: null, networkPolicy: null })).rejects.toThrow(/placement/);
});

it("is refused where another release has the same prefix for its teams' namespaces", async () => {
  const annotations = {
    ...{ "meta.helm.sh/release-namespace": "elsewhere", "meta.helm.sh/release-name": "first" },
    "sluice.dev/namespace-prefix": "twice",
  };
  const role = {
    ...{ apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole" },
    metadata: { name: "elsewhere:first-sluice-broker", annotations },
  };
  await cluster.objects.create(role);
  onTestFinished(async () => void (await cluster.objects.delete(role)));
  const asked = ["--dry-run=server", "--kubeconfig", cluster.kubeconfig];
  const withPrefix = (namespacePrefix: string) => ({ ...values, workspaces: { namespacePrefix } });
  await expect(template(withPrefix("twice"), ...asked)).rejects.toThrow(/elsewhere\/first has teams .* with twice/);
  const made = await template(withPrefix("once"), ...asked);
  expect(made.find(({ kind }) => kind === "ClusterRole")?.metadata?.annotations).toMatchObject({
    "sluice.dev/namespace-prefix": "once",
  });
});

it("is refused with another prefix than the one that its teams have namespaces by", async () => {
  const name = "default:sluice-broker";
  const annotations = {
    ...{ "meta.helm.sh/release-namespace": "default", "meta.helm.sh/release-name": "sluice" },
    "sluice.dev/namespace-prefix": "first",
  };
  const role = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name, annotations } };
  await cluster.objects.create(role);
  onTestFinished(async () => void (await cluster.objects.delete(role)));
  const asked = ["--dry-run=server", "--kubeconfig", cluster.kubeconfig];
  const withPrefix = async (namespacePrefix: string) =>
    await template({ ...values, workspaces: { namespacePrefix } }, ...asked);
  await expect(withPrefix("other")).rejects.toThrow(/namespaces of this release's teams begin with first/);
  expect((await withPrefix("first")).find(({ kind }) => kind === "ClusterRole")?.metadata?.annotations).toMatchObject({
    "sluice.dev/namespace-prefix": "first",
  });
}, 400_000);
