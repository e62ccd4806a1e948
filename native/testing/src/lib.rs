//! Where tests find programs and files. The paths are asked when a test runs, not when it is compiled: compiled tests
//! are kept outside the checkout, and a path of the checkout that compiled them may be gone or, worse, another's.

use std::path::PathBuf;

/// The folder of the package whose tests run. Cargo and `npm test` set the variable for each test program.
pub fn package_folder() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").expect("CARGO_MANIFEST_DIR, as cargo and npm test set it").into()
}

/// A program that cargo built in the same profile as the running test.
pub fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    // <target>/<profile>/deps/<test>
    let profile = test.ancestors().nth(2).expect("a test lies in cargo's folder of test programs");
    profile.join(name)
}
