//! The control channel's Rust types against the JSON Schemas that are generated from the broker's contracts: a value
//! made from the schema must be read, and written again without a difference.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use sluice_gpud::control::messages::{BrokerMessage, DeviceReport, GpudMessage, JoinAnswer, JoinInput, LeaseUsage};
use sluice_gpud::token::Claims;

fn schema(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// Every value that differs in a choice the schema leaves: variants, enumerated values, null or not.
fn samples(root: &Value, schema: &Value) -> Vec<Value> {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
        return samples(root, &root["$defs"][name]);
    }
    if let Some(value) = schema.get("const") {
        return vec![value.clone()];
    }
    for choice in ["enum", "oneOf", "anyOf"] {
        match (choice, schema[choice].as_array()) {
            ("enum", Some(values)) => return values.clone(),
            (_, Some(variants)) => return variants.iter().flat_map(|variant| samples(root, variant)).collect(),
            _ => {}
        }
    }
    match &schema["type"] {
        Value::Array(kinds) => kinds.iter().flat_map(|kind| samples(root, &json!({"type": kind}))).collect(),
        Value::String(kind) => match kind.as_str() {
            "string" => vec![json!("x".repeat(schema["minLength"].as_u64().unwrap_or(3) as usize))],
            "integer" => vec![json!(7)],
            "boolean" => vec![json!(true), json!(false)],
            "null" => vec![Value::Null],
            "array" => samples(root, &schema["items"]).into_iter().map(|item| json!([item])).collect(),
            "object" => objects(root, schema),
            other => panic!("{other}: not used by the contracts so far"),
        },
        other => panic!("{other}: not used by the contracts so far"),
    }
}

fn objects(root: &Value, schema: &Value) -> Vec<Value> {
    let Some(properties) = schema["properties"].as_object() else {
        let of = samples(root, &schema["additionalProperties"]);
        return of.into_iter().map(|value| json!({"17": value})).collect();
    };
    let choices: Vec<(&String, Vec<Value>)> =
        properties.iter().map(|(name, schema)| (name, samples(root, schema))).collect();
    let most = choices.iter().map(|(_, values)| values.len()).max().unwrap_or(1);
    let pick = |round: usize| {
        let field = |(name, values): &(&String, Vec<Value>)| ((*name).clone(), values[round % values.len()].clone());
        Value::Object(choices.iter().map(field).collect::<Map<_, _>>())
    };
    (0..most).map(pick).collect()
}

fn agree<T: Serialize + DeserializeOwned>(root: &Value, name: &str) {
    let values = samples(root, &root["$defs"][name]);
    assert!(!values.is_empty(), "{name} is not in the schema");
    for value in values {
        let read: T = serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{name}: {error}: {value}"));
        assert_eq!(serde_json::to_value(read).expect("JSON"), value, "{name}");
    }
}

#[test]
fn control_messages_are_those_of_the_broker() {
    let root = schema(include_str!("../../../schemas/control.json"));
    agree::<BrokerMessage>(&root, "BrokerMessage");
    agree::<GpudMessage>(&root, "GpudMessage");
    agree::<DeviceReport>(&root, "DeviceReport");
    agree::<LeaseUsage>(&root, "LeaseUsage");
    agree::<JoinInput>(&root, "JoinInput");
    agree::<JoinAnswer>(&root, "JoinAnswer");
}

#[test]
fn session_tokens_are_read_as_the_broker_writes_them() {
    let root = schema(include_str!("../../../schemas/session-token.json"));
    for claims in samples(&root, &root["$defs"]["SessionTokenClaims"]) {
        let read: Claims = serde_json::from_value(claims.clone()).unwrap_or_else(|error| panic!("{error}: {claims}"));
        assert_eq!((read.exp, read.lease.memory_bytes), (7, 7));
    }
}
