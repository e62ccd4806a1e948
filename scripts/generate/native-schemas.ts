import { z } from "zod";
import * as control from "#server/contracts/control.ts";
import * as lease from "#server/contracts/lease.ts";
import * as sessionToken from "#server/contracts/session-token.ts";

/** The contracts that Rust speaks, one file a module: a JSON Schema whose `$defs` are its schemas, by exported name. */
export function nativeSchemas(): [string, unknown][] {
  return [
    ["native/schemas/lease.json", definitionsOf("lease", lease)],
    ["native/schemas/control.json", definitionsOf("control", control)],
    ["native/schemas/session-token.json", definitionsOf("session-token", sessionToken)],
  ];
}

function definitionsOf(name: string, module: Record<string, unknown>): unknown {
  const registry = z.registry<{ id: string }>();
  for (const [key, schema] of Object.entries(module)) {
    if (schema instanceof z.ZodType) registry.add(schema, { id: key.charAt(0).toUpperCase() + key.slice(1) });
  }
  // `input` is what may be written: fields with a default may be left out.
  const { schemas } = z.toJSONSchema(registry, { io: "input", uri: (id) => `#/$defs/${id}` });
  const $defs = Object.fromEntries(
    Object.entries(schemas).map(([id, schema]) => [
      id,
      Object.fromEntries(Object.entries(schema).filter(([name]) => name !== "$schema" && name !== "$id")),
    ]),
  );
  return { $schema: "https://json-schema.org/draft/2020-12/schema", title: `sluice ${name}`, $defs };
}
