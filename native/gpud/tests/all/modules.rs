//! Images of modules outlive the session that sent them, and are for those alone who hold them too.

use crate::support::{ADD_ONE, BASE64URL, Client, Gpud, PATIENCE};
use base64::Engine as _;
use ring::digest::{Context, SHA256};
use sluice_protocol::frame::ASKED_IMAGE_BYTES;
use sluice_protocol::handshake::IMAGE_CONTEXT;
use sluice_protocol::messages::{Goodbye, ModuleFind, ModuleFindReply, ModuleUnload};
use sluice_protocol::{Failure, MODULE_STORE};
use std::time::Instant;

const MIB: u64 = 1 << 20;
const HEAP: u64 = 8 << 20;

fn hash(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    parts.iter().for_each(|part| context.update(part));
    context.finish().as_ref().try_into().expect("32 bytes")
}

/// [`ADD_ONE`], so long that it is worth keeping; another one for each seed.
fn program(seed: u32) -> String {
    format!("{ADD_ONE}\n// {seed} {}\n", "x".repeat(ASKED_IMAGE_BYTES))
}

fn nonce(client: &Client) -> Vec<u8> {
    assert!(client.welcome.features.iter().any(|feature| feature == MODULE_STORE));
    BASE64URL.decode(&client.welcome.nonce).expect("base64url")
}

fn find_with(client: &mut Client, image: &str, proof: [u8; 32]) -> Result<ModuleFindReply, Failure> {
    let hash = hash(&[image.as_bytes()]);
    client.call(&ModuleFind { module: 7, hash, proof, heap: HEAP })
}

/// Whether gpud loads a module from its hash, for somebody who holds it; it is ended again.
fn is_kept(client: &mut Client, image: &str) -> bool {
    let proof = hash(&[IMAGE_CONTEXT, &nonce(client), image.as_bytes()]);
    let known = find_with(client, image, proof).expect("an answer").known != 0;
    if known {
        client.send(&ModuleUnload { module: 7 });
    }
    known
}

/// Sends an image, and waits until gpud keeps it: it is handed over when the answer has been sent.
fn sent(client: &mut Client, image: &str) {
    client.load(9, image).expect("loaded");
    let began = Instant::now();
    while !is_kept(client, image) {
        assert!(began.elapsed() < PATIENCE, "the image is not kept");
    }
    client.send(&ModuleUnload { module: 9 });
}

#[test]
fn another_lease_needs_the_hash_alone_when_the_process_that_sent_the_image_is_gone() {
    let gpud = Gpud::start(&[]);
    let (image, other) = (program(1), program(2));
    let mut first = gpud.connect("lea-1", 64 * MIB);
    assert!(!is_kept(&mut first, &image));
    sent(&mut first, &image);
    let worker = gpud.workers();
    first.send(&Goodbye);
    drop(first);
    let began = Instant::now();
    while gpud.workers() == worker && began.elapsed() < PATIENCE {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }

    let mut second = gpud.connect("lea-2", 64 * MIB);
    let proof = hash(&[IMAGE_CONTEXT, &nonce(&second), image.as_bytes()]);
    let answer = find_with(&mut second, &image, proof).expect("an answer");
    assert_eq!((answer.known, answer.info.functions[0].name.as_str()), (1, "add_one"));
    let address = second.alloc(1024).expect("memory");
    second.write(address, &[1; 1024]);
    second.launch(7, 1, 256, &address.to_le_bytes());
    let expected: Vec<u8> = [2u8, 1, 1, 1].repeat(256);
    assert_eq!(second.read(address, 1024).expect("read"), expected);
    assert!(!is_kept(&mut second, &other), "nobody has sent it");
}

#[test]
fn who_knows_a_hash_alone_gets_nothing() {
    let gpud = Gpud::start(&[]);
    let image = program(3);
    let mut owner = gpud.connect("lea-1", 64 * MIB);
    sent(&mut owner, &image);
    let mut other = gpud.connect("lea-2", 64 * MIB);
    let (own, others) = (nonce(&other), nonce(&owner));
    assert_ne!(own, others);
    let image_hash = hash(&[image.as_bytes()]);
    for proof in [
        image_hash,
        [0; 32],
        // What the owner has said.
        hash(&[IMAGE_CONTEXT, &others, image.as_bytes()]),
        hash(&[IMAGE_CONTEXT, &own, &image_hash]),
        hash(&[&own, image.as_bytes()]),
    ] {
        let answer = find_with(&mut other, &image, proof).expect("an answer");
        assert_eq!((answer.known, answer.info.functions.len()), (0, 0));
    }
    assert!(is_kept(&mut other, &image), "who holds it has it");
}

#[test]
fn the_store_keeps_to_its_limit() {
    let gpud = Gpud::start(&["--image-limit", "40K"]);
    let mut client = gpud.connect("lea-1", 64 * MIB);
    let [one, two, three] = [4, 5, 6].map(program);
    sent(&mut client, &one);
    sent(&mut client, &two);
    assert!(is_kept(&mut client, &one));
    sent(&mut client, &three);
    assert!(is_kept(&mut client, &one) && is_kept(&mut client, &three) && !is_kept(&mut client, &two));
}
