import { readdir } from "node:fs/promises";
import path from "node:path";
import { expect, it } from "vitest";
import { parseContainerfile, readContainerfile } from "./containerfile.ts";

const FOLDER = "deploy/images";
/** As a Containerfile names an argument. */
const argument = (name: string) => `$\{${name}}`;
const told = { VERSION: "0123456789abcdef", ENVIRONMENT: "jax" };
const entries = await readdir(FOLDER, { withFileTypes: true });
const words = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);

it("has a Containerfile of each image", () => {
  expect(words).toEqual(["client", "control-plane", "gpud", "workspace"]);
});

it("pins the same base by its digest in all of them", async () => {
  const bases = await Promise.all(words.map(async (word) => (await readContainerfile(".", word, told)).base));
  expect(new Set(bases.map(({ name, digest }) => `${name}@${digest}`)).size).toBe(1);
  expect(bases[0]?.digest).toMatch(/^sha256:[0-9a-f]{64}$/);
});

it.each(words)("labels the image of %s with what it is, and with the base that the build took", async (word) => {
  const base = { BASE_NAME: "registry.example/debian", BASE_DIGEST: `sha256:${"1".repeat(64)}` };
  const { config } = await readContainerfile(".", word, { ...told, ...base });
  const label = (name: string) => config.labels[`org.opencontainers.image.${name}`];
  expect(label("title")).toContain(`Sluice: ${word.replace("-", " ")}`);
  expect(label("description")).toMatch(/\w+ \w+/);
  expect([label("version"), label("licenses")]).toEqual([told.VERSION, "Apache-2.0"]);
  expect([label("base.name"), label("base.digest")]).toEqual([base.BASE_NAME, base.BASE_DIGEST]);
});

it("runs all but gpud as another user than root, by number, as the kubelet can check it", async () => {
  const users = await Promise.all(
    words.map(async (word) => [word, (await readContainerfile(".", word, told)).config.user]),
  );
  expect(Object.fromEntries(users)).toEqual({
    ...{ client: "65532:65532", "control-plane": "1000:1000", gpud: "0:0", workspace: "1000:1000" },
  });
});

it("fills in what the build is told, and joins lines", () => {
  const digest = `sha256:${"a".repeat(64)}`;
  const text = [
    ...["# a comment", `ARG BASE=debian@${digest}`, `FROM ${argument("BASE")}`, "ARG VERSION", "ADD root.tar /"],
    ...[
      `LABEL one="${argument("VERSION")}" \\\\`,
      '      two="b c"',
      'ENV A="1"',
      "USER 1:1",
      'ENTRYPOINT ["/a", "b"]',
    ],
  ];
  expect(parseContainerfile("x", text.join("\n"), { VERSION: "7" })).toMatchObject({
    base: { name: "debian", digest },
    layers: ["root.tar"],
    config: { labels: { one: "7", two: "b c" }, env: { A: "1" }, user: "1:1", entrypoint: ["/a", "b"] },
  });
});

it.each([
  ["FROM debian:bookworm", "debian:bookworm has no digest"],
  ["RUN curl https://example.com | sh", "would only happen in a container engine"],
  ["VOLUME /data", "is not understood here"],
  ["ADD https://example.com/x /", "adds no layer"],
  [`LABEL a="${argument("WHAT")}"`, "no ARG WHAT with a value"],
])("refuses %s", (line, reason) => {
  expect(() => parseContainerfile("x", `FROM a@sha256:${"a".repeat(64)}\n${line}`, told)).toThrow(reason);
});

it("starts scripts that are there", async () => {
  const starts = { gpud: "deploy/images/gpud/start.sh", workspace: "server/launchers/kubernetes/image/start.sh" };
  for (const [word, script] of Object.entries(starts)) {
    const { entrypoint } = (await readContainerfile(".", word, told)).config;
    expect(path.basename(entrypoint[1] ?? "")).toBe(path.basename(script));
  }
});
