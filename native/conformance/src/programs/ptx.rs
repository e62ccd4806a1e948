//! PTX that is wrong: told where it is handed over, with its line in the program's log.

use super::{ADD, Program, start};
use crate::driver::{Driver, table};
use std::ffi::{CStr, CString, c_char, c_void};

pub const PROGRAMS: &[Program] = &[
    ("wrong_ptx_is_not_loaded", wrong_ptx_is_not_loaded),
    ("a_wrong_library_is_not_loaded", a_wrong_library_is_not_loaded),
    ("wrong_ptx_is_not_linked", wrong_ptx_is_not_linked),
];

table! {
    Jit;
    cuModuleLoadDataEx(*mut usize, *const c_void, u32, *const u32, *mut *mut c_void);
    cuLibraryLoadData(*mut usize, *const c_void, *const u32, *mut *mut c_void, u32, *const u32, *const *mut c_void, u32);
    cuLinkCreate_v2(u32, *const u32, *mut *mut c_void, *mut usize);
    cuLinkAddData_v2(usize, u32, *const c_void, usize, *const c_char, u32, *const u32, *const *mut c_void);
    cuLinkAddFile_v2(usize, u32, *const c_char, u32, *const u32, *const *mut c_void);
    cuLibraryGetModule(*mut usize, usize);
    cuLinkComplete(usize, *mut *mut c_void, *mut usize);
    cuLinkDestroy(usize);
}

/// CUDA_ERROR_INVALID_PTX
const INVALID_PTX: u32 = 218;
/// CU_JIT_INPUT_PTX
const PTX: u32 = 1;
/// CU_JIT_ERROR_LOG_BUFFER and its size in bytes.
const OPTIONS: [u32; 2] = [5, 6];
const LOG_BYTES: usize = 512;

/// A log of errors, as the options of a call name it.
struct Log {
    text: [u8; LOG_BYTES],
    values: [*mut c_void; 2],
}

impl Log {
    fn new() -> Box<Log> {
        let mut log = Box::new(Log { text: [0; LOG_BYTES], values: [std::ptr::null_mut(); 2] });
        log.values = [log.text.as_mut_ptr().cast(), LOG_BYTES as *mut c_void];
        log
    }

    /// What was written, which the size says too.
    fn written(&self) -> &str {
        let text = CStr::from_bytes_until_nul(&self.text).expect("ends").to_str().expect("text");
        let bytes = self.values[1] as usize;
        assert!(!text.is_empty() && (text.len()..=text.len() + 1).contains(&bytes), "{bytes}: {text}");
        text
    }
}

/// Line 14 names a register that there is not.
fn wrong() -> CString {
    CString::new(ADD.replace("mov.u32 %r4, %ntid.x", "mov.u32 %r4, %r99")).expect("text")
}

/// Nothing has been done on the device before.
fn wrong_ptx_is_not_loaded(driver: &Driver) {
    start(driver);
    let jit = Jit::of(driver.library);
    for (right, wrong, line) in [
        ("mov.u32 %r3, %ctaid.x", "fro.u32 %r3, %ctaid.x", 13),
        ("mov.u32 %r4, %ntid.x", "mov.u32 %r4, %r99", 14),
        ("mov.u32 %r5, %tid.x", "call undeclared, (%r5)", 15),
        ("mov.u32 %r5, %tid.x", "nonsense.u32 %r1", 15),
        ("add.s32 %r7, %r7, %r2", "add.u32 %r7, %r7, 0f3F800000", 23),
        ("st.global.u32", "st.u33", 24),
    ] {
        let image = CString::new(ADD.replace(right, wrong)).expect("text");
        let (mut module, mut log) = (0, Log::new());
        // SAFETY: live locals and lists of two.
        let code = unsafe {
            let values = log.values.as_mut_ptr();
            (jit.cuModuleLoadDataEx)(&raw mut module, image.as_ptr().cast(), 2, OPTIONS.as_ptr(), values)
        };
        assert_eq!(code, INVALID_PTX, "{wrong}");
        assert!(log.written().contains(&format!("line {line}")), "{wrong}: {}", log.written());
    }
}

/// A driver that loads lazily tells it when something of the library is asked for.
fn a_wrong_library_is_not_loaded(driver: &Driver) {
    start(driver);
    let jit = Jit::of(driver.library);
    let (mut library, mut log, image) = (0, Log::new(), wrong());
    // SAFETY: live locals and lists of two; no options of the library.
    let code = unsafe {
        let values = log.values.as_mut_ptr();
        let none: *const u32 = std::ptr::null();
        (jit.cuLibraryLoadData)(
            &raw mut library,
            image.as_ptr().cast(),
            OPTIONS.as_ptr(),
            values,
            2,
            none,
            none.cast(),
            0,
        )
    };
    if !driver.is_ours() && code == 0 {
        let mut loaded = 0;
        // SAFETY: a live local, a library made above.
        assert_eq!(unsafe { (jit.cuLibraryGetModule)(&raw mut loaded, library) }, INVALID_PTX);
        return;
    }
    assert_eq!(code, INVALID_PTX);
    assert!(log.written().contains("line 14"), "{}", log.written());
}

/// As data and as a file, behind PTX that is right; what was added before can be linked all the same. A card behind the
/// wire is given the text when the module is loaded, and tells it then.
fn wrong_ptx_is_not_linked(driver: &Driver) {
    start(driver);
    let jit = Jit::of(driver.library);
    let (mut state, mut log, image) = (0, Log::new(), wrong());
    let right = CString::new(ADD).expect("text");
    let path = std::env::temp_dir().join(format!("sluice-wrong-{}.ptx", std::process::id()));
    std::fs::write(&path, image.to_bytes_with_nul()).expect("written");
    let file = CString::new(path.display().to_string()).expect("text");
    let none: *const u32 = std::ptr::null();
    let add = |state, text: &CString| {
        let bytes = text.as_bytes_with_nul();
        // SAFETY: the text is live and as long as said.
        unsafe {
            (jit.cuLinkAddData_v2)(
                state,
                PTX,
                bytes.as_ptr().cast(),
                bytes.len(),
                none.cast(),
                0,
                none.cast(),
                none.cast(),
            )
        }
    };
    let (mut joined, mut bytes, mut module) = (std::ptr::null_mut(), 0, 0);
    // SAFETY: live locals and lists of two, which stay until the linker is destroyed.
    unsafe {
        assert_eq!((jit.cuLinkCreate_v2)(2, OPTIONS.as_ptr(), log.values.as_mut_ptr(), &raw mut state), 0);
        assert_eq!(add(state, &right), 0);
        if add(state, &image) == 0 {
            let completed = (jit.cuLinkComplete)(state, &raw mut joined, &raw mut bytes);
            assert!(completed != 0 || (driver.cuModuleLoadData)(&raw mut module, joined) == INVALID_PTX);
            return;
        }
        assert!(log.written().contains("line 14"), "{}", log.written());
        let told = |log: &Log| String::from_utf8_lossy(&log.text).matches("line 14").count();
        let first = told(&log);
        assert_eq!((jit.cuLinkAddFile_v2)(state, PTX, file.as_ptr(), 0, none.cast(), none.cast()), INVALID_PTX);
        // What is wrong later stands behind what was wrong before.
        assert!(told(&log) > first, "{}", String::from_utf8_lossy(&log.text));
        if driver.is_ours() {
            assert_eq!((jit.cuLinkComplete)(state, &raw mut joined, &raw mut bytes), 0);
            assert_eq!((driver.cuModuleLoadData)(&raw mut module, joined), 0);
        }
        assert_eq!((jit.cuLinkDestroy)(state), 0);
    }
    std::fs::remove_file(&path).expect("was written");
}
