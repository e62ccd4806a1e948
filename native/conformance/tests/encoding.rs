//! Every function of the libraries whose objects are made before they are used travels: called with arguments that its
//! declaration names, it reaches the recording backend by its name, and what it asks for comes back.

use serde_json::Value;
use sluice_api::libraries::{Function, Kind, Way, libraries};
use sluice_client::process;
use sluice_conformance::broker::Broker;
use sluice_conformance::calls::{attach, start};
use sluice_conformance::gpud::Gpud;
use sluice_conformance::libraries::{Library, download, upload};
use std::collections::BTreeSet;
use std::sync::Arc;

const LIBRARIES: [(&str, u32); 6] =
    [("cublas", 13), ("cufft", 12), ("curand", 10), ("cusolver", 12), ("cusparse", 12), ("cusparselt", 0)];

/// Host memory that no call reaches past.
type Room = [u64; 2048];

/// Arguments of each kind.
struct Arguments {
    device: usize,
    /// An object that the call names, and one that it ends.
    object: usize,
    ending: usize,
    host: Box<Room>,
    /// Where new objects are put: structures of the program have their own place each.
    new: Box<Room>,
}

impl Arguments {
    fn slots(&mut self, function: &Function) -> Vec<usize> {
        let (host, new) = (self.host.as_mut_ptr() as usize, self.new.as_mut_ptr() as usize);
        let slot = |kind: &Kind| match kind {
            Kind::New => new,
            Kind::End => self.ending,
            Kind::Object | Kind::Subject | Kind::Optional | Kind::Which => self.object,
            Kind::Device => self.device,
            Kind::Stream | Kind::Any => 0,
            Kind::F32 => 1f32.to_bits() as usize,
            Kind::F64 | Kind::Complex => 1f64.to_bits() as usize,
            Kind::I32 | Kind::U32 | Kind::I64 | Kind::U64 | Kind::Dim | Kind::Dim64 | Kind::Enum => 1,
            Kind::Scalar(_) | Kind::Result(_) | Kind::Both(_) => host,
            Kind::In(_) | Kind::Out(_) | Kind::InOut(_) | Kind::Streams => host,
            other => panic!("{}: {other:?} is not made up here", function.symbol),
        };
        function.parameters.iter().map(|parameter| slot(&parameter.kind)).collect()
    }
}

fn travels(function: &Function) -> bool {
    matches!(function.way, Way::Make | Way::End | Way::Set | Way::Run | Way::Ask | Way::Read)
}

#[test]
fn every_function_reaches_the_server_by_its_name() {
    let file = std::env::temp_dir().join(format!("sluice-encoding-{}.jsonl", std::process::id()));
    let gpud = Gpud::start("null", &["--recording", &file.display().to_string()]).expect("gpud");
    let broker = Broker::start(Arc::new(gpud), 256 << 20).expect("broker");
    // SAFETY: no other thread of this test reads the environment now.
    unsafe { broker.set_environment() };
    start();
    attach();
    let device = upload(&[0; 4096]);
    let mut wanted = BTreeSet::new();
    for (name, abi) in LIBRARIES {
        let loaded = Library::load(name, abi);
        let declared = libraries().iter().find(|library| library.source.name == name).expect("declared").get();
        let in_place = declared.source.in_place;
        let maker = declared.functions.iter().find(|function| function.way == Way::Make).expect("a maker");
        // An object as its library's functions name it.
        let make = |room: &mut Room| {
            *room = [0; 2048];
            let place = room.as_mut_ptr() as usize;
            let slots: Vec<usize> =
                maker.parameters.iter().map(|p| if p.kind == Kind::New { place } else { 1 }).collect();
            loaded.run(&maker.symbol, &slots);
            if in_place { place } else { room[0] as usize }
        };
        let (mut kept, mut ended) = (Box::new([0; 2048]), Box::new([0; 2048]));
        for function in declared.functions.iter().filter(|function| travels(function)) {
            let mut arguments = Arguments {
                device: device as usize,
                object: make(&mut kept),
                ending: make(&mut ended),
                host: Box::new([0; 2048]),
                new: Box::new([0; 2048]),
            };
            let slots = arguments.slots(function);
            loaded.run(&function.symbol, &slots);
            if function.way == Way::Make {
                assert_ne!(arguments.new[0], 0, "{} made nothing", function.symbol);
            }
            wanted.insert(function.symbol.clone());
        }
    }
    // All that was posted has arrived when this answers.
    download(device, 8);
    process::get().device(0).any_session().expect("attached").close();
    let recording = std::fs::read_to_string(&file).expect("a recording");
    let _ = std::fs::remove_file(&file);
    let calls = recording.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let seen: BTreeSet<String> = calls.filter_map(|line| Some(line["call"].as_str()?.to_owned())).collect();
    let missing: Vec<&String> = wanted.iter().filter(|symbol| !seen.contains(*symbol)).collect();
    assert!(
        missing.is_empty() && wanted.len() > 750,
        "{} of {} did not travel: {missing:?}",
        missing.len(),
        wanted.len()
    );
}
