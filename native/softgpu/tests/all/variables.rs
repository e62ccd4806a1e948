//! First values of variables.

use crate::common::Device;
use sluice_softgpu::Module;

#[test]
fn bytes_of_an_address_are_put_together() {
    let text = ".version 8.0\n.target sm_75\n.address_size 64\n.global .align 4 .b8 there[8];\n\
        .global .align 8 .b8 packed[9] = {5, 0xFF(generic(there)+4), 0xFF00(generic(there)+4), 0xFF0000(generic(there)+4), \
        0xFF000000(generic(there)+4), 0xFF00000000(generic(there)+4), 0xFF0000000000(generic(there)+4), \
        0xFF000000000000(generic(there)+4), 0xFF00000000000000(generic(there)+4)};\n\
        .visible .entry k()\n{\nret;\n}\n";
    let d = Device::new(1);
    let m = d.load(text);
    let bytes = d.download::<u8>(m.global("packed").unwrap().0, 9);
    assert_eq!(bytes[0], 5);
    assert_eq!(bytes[1..], (m.global("there").unwrap().0 + 4).to_le_bytes());
}

#[test]
fn rows_that_are_not_full_end_in_zeros() {
    let text = ".version 8.0\n.target sm_75\n.address_size 64\n.global .u16 rows[2][3] = {{1}, {2, 3}};\n\
        .global .u8 deep[2][2][2] = {{{1, 2}, {3}}, {{}, {4, 5}}};\n.const .u32 flat[2][2] = {1, 2, 3};\n\
        .visible .entry k()\n{\nret;\n}\n";
    let d = Device::new(1);
    let m = d.load(text);
    assert_eq!(d.download::<u16>(m.global("rows").unwrap().0, 6), [1, 0, 0, 2, 3, 0]);
    assert_eq!(d.download::<u8>(m.global("deep").unwrap().0, 8), [1, 2, 3, 0, 0, 0, 4, 5]);
    assert_eq!(d.download::<u32>(m.global("flat").unwrap().0, 4), [1, 2, 3, 0]);
    let large = text.replace("rows[2][3] = {{1}", "rows[2][900000000] = {{1}");
    assert_eq!(Module::parse(large.as_bytes()).unwrap_err().line, 4);
}
